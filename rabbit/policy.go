package rabbit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bide-mq/bide"
)

// The broker renews what it says of policies every 5 s
// (collect_statistics_interval), and says nothing of a new queue before that.
const (
	statisticsWait = 12 * time.Second
	statisticsPoll = 500 * time.Millisecond
)

// policy is the part of an effective policy definition that can break a queue
// of ours.
type policy struct {
	MessageTTL     *float64 `json:"message-ttl"`
	Expires        *float64 `json:"expires"`
	MaxLength      *float64 `json:"max-length"`
	MaxLengthBytes *float64 `json:"max-length-bytes"`
	Overflow       string   `json:"overflow"`
}

// known reports whether the statistics have come.
func (q queueInfo) known() bool { return len(q.Effective) > 0 && string(q.Effective) != "null" }

// definition reads the effective policy, which already merges the operator's.
// An empty one may be an object or a list.
func (q queueInfo) definition() (p policy) {
	_ = json.Unmarshal(q.Effective, &p) // a list has nothing to read
	return p
}

// checkPolicies asks the management API what policies do to the configured
// queues.
func checkPolicies(ctx context.Context, cfg Config) ([]bide.Finding, error) {
	m, err := newManagement(cfg)
	if err != nil {
		return nil, err
	}
	queues, err := m.statistics(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return cfg.policyFindings(queues), nil
}

// policyFindings says what policies do to the configured queues.
func (c Config) policyFindings(queues map[string]queueInfo) []bide.Finding {
	var findings []bide.Finding
	ttls, _ := c.ttls()
	for i, name := range c.Queues() {
		q, there := queues[name]
		if !there {
			continue
		}
		report := func(severity bide.Severity, problem string) {
			findings = append(findings, bide.Finding{
				Severity: severity, Subject: "queue " + name, Problem: q.policies() + " " + problem,
				Remedy: "exclude the queue from the policy, by a pattern that does not match it or by a policy of higher priority",
			})
		}
		if !q.known() {
			findings = append(findings, bide.Finding{
				Severity: bide.SeverityWarning, Subject: "queue " + name,
				Problem: "the broker does not say which policies apply", Remedy: "check again in a few seconds",
			})
			continue
		}
		if i == 0 {
			checkDeliveryPolicy(q.definition(), report)
		} else {
			c.checkTierPolicy(ttls[i-1], q.definition(), report)
		}
	}
	return findings
}

// policies names where the settings come from.
func (q queueInfo) policies() string {
	switch {
	case q.Operator != "" && q.Policy != "":
		return fmt.Sprintf("policies %q and %q (operator's)", q.Policy, q.Operator)
	case q.Operator != "":
		return fmt.Sprintf("operator policy %q", q.Operator)
	default:
		return fmt.Sprintf("policy %q", q.Policy)
	}
}

// checkTierPolicy looks for what lets messages out early, drops or refuses
// them. A policy's dead-letter settings yield to the queue's own arguments, so
// they are harmless, but its overflow prevails.
func (c Config) checkTierPolicy(ttl time.Duration, p policy, report func(bide.Severity, string)) {
	if p.MessageTTL != nil && *p.MessageTTL < float64(ttl.Milliseconds()) {
		report(bide.SeverityError, fmt.Sprintf("sets message-ttl to %.0f ms: messages arrive after that instead of %s", *p.MessageTTL, ttl))
	}
	if p.Expires != nil {
		report(bide.SeverityError, "sets expires: the broker deletes the queue with all its messages")
	}
	if c.QueueType == Quorum && p.Overflow != "" && p.Overflow != "reject-publish" {
		report(bide.SeverityError, fmt.Sprintf("sets overflow to %s: dead-lettering falls back to at-most-once", p.Overflow))
	}
	if !p.bounded() {
		return
	}
	if c.QueueType == Quorum && (p.Overflow == "" || p.Overflow == "reject-publish") {
		report(bide.SeverityWarning, "bounds the queue's length: the broker refuses messages when it is full, and their tasks fire late")
		return
	}
	report(bide.SeverityError, "bounds the queue's length: messages arrive early when it is full")
}

func checkDeliveryPolicy(p policy, report func(bide.Severity, string)) {
	if p.MessageTTL != nil {
		report(bide.SeverityError, fmt.Sprintf("sets message-ttl to %.0f ms: messages that are not consumed by then are dropped", *p.MessageTTL))
	}
	if p.Expires != nil {
		report(bide.SeverityError, "sets expires: without a consumer the broker deletes the queue with all its messages")
	}
	if p.bounded() {
		report(bide.SeverityWarning, "bounds the queue's length: messages are dropped, or kept in their tier, when it is full")
	}
}

func (p policy) bounded() bool { return p.MaxLength != nil || p.MaxLengthBytes != nil }

// statistics lists the ledger's queues and waits until the broker has spoken
// of the policies of each configured queue, or for statisticsWait.
func (m *management) statistics(ctx context.Context, cfg Config) (map[string]queueInfo, error) {
	for deadline := time.Now().Add(statisticsWait); ; {
		queues, err := m.queues(ctx, cfg.namespace())
		if err != nil || ctx.Err() != nil || time.Now().After(deadline) || allKnown(cfg, queues) {
			return queues, err
		}
		sleep(ctx, statisticsPoll)
	}
}

func allKnown(cfg Config, queues map[string]queueInfo) bool {
	for _, name := range cfg.Queues() {
		if q, there := queues[name]; there && !q.known() {
			return false
		}
	}
	return true
}
