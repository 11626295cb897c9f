package rabbit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

// checkTimeout bounds a check when the broker does not answer.
const checkTimeout = 30 * time.Second

// Check looks over the broker for the services that use the configuration, and
// returns what it finds, the worst first. It changes nothing for them: queues
// that are missing stay so, and two queues of its own are gone afterwards. It
// takes 5 to 15 s, which it waits for the broker's statistics and for a dead
// letter to be tried again.
func Check(ctx context.Context, cfg Config) []bide.Finding {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return bide.FindingsOf("configuration", err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var amqpFindings, managementFindings []bide.Finding
	var both sync.WaitGroup
	both.Go(func() { amqpFindings = checkAMQP(ctx, cfg) })
	both.Go(func() { managementFindings = checkManagement(ctx, cfg) })
	both.Wait()
	findings := slices.Concat(amqpFindings, managementFindings)
	if cfg.QueueType == Classic {
		findings = append(findings, bide.Finding{
			Severity: bide.SeverityWarning, Subject: "queue type",
			Problem: "classic tiers dead-letter at most once: a message that expires while the delivery queue cannot take it is lost and its task fires late, by the sweep",
			Remedy:  "prefer quorum queues",
		})
	}
	slices.SortStableFunc(findings, bide.WorstFirst)
	return findings
}

// checkAMQP connects as the services do and compares the queues that exist.
func checkAMQP(ctx context.Context, cfg Config) []bide.Finding {
	s, err := dial(ctx, cfg, "check")
	if err != nil {
		return bide.FindingsOf("connection to "+cfg.endpoint(), err)
	}
	defer s.close()
	defer context.AfterFunc(ctx, func() { s.socket.Close() })()
	tiers, err := cfg.tiers()
	if err != nil {
		return bide.FindingsOf("configuration", err)
	}
	findings := append(checkQueues(s.conn, append([]queue{cfg.delivery()}, tiers...)), checkIntake(s.conn, cfg)...)
	if cfg.QueueType == Quorum {
		findings = append(findings, checkWorker(ctx, s, cfg)...)
	}
	return findings
}

// checkQueues compares the queues that exist with their declarations, which
// the broker does when they are declared again.
func checkQueues(conn *amqp.Connection, queues []queue) []bide.Finding {
	var findings []bide.Finding
	var missing []string
	for _, q := range queues {
		there, err := exists(conn, q.name)
		if err == nil && !there {
			missing = append(missing, q.name)
			continue
		}
		if err == nil {
			err = declare(conn, q)
		}
		if err != nil {
			findings = append(findings, bide.FindingsOf("queue "+q.name, err)...)
		}
	}
	if len(missing) > 0 {
		findings = append(findings, bide.Finding{
			Severity: bide.SeverityInfo, Subject: "queues", Problem: "do not exist yet: " + strings.Join(missing, ", "),
			Remedy: "the services declare them when they start",
		})
	}
	return findings
}

// longBacklog is the length of the delivery queue from which on consumers do
// not keep up.
const longBacklog = 10_000

// checkIntake asks whether what arrives is consumed. AMQP tells how it is; the
// management API, how it was up to 5 s ago.
func checkIntake(conn *amqp.Connection, cfg Config) []bide.Finding {
	subject := "queue " + cfg.DeliveryQueue()
	q, there, err := inspect(conn, cfg.DeliveryQueue())
	switch {
	case err != nil:
		return bide.FindingsOf(subject, translateQueue("look at", cfg.DeliveryQueue(), err))
	case !there:
		return nil // reported with the queues that are missing
	case q.Messages > longBacklog:
		return []bide.Finding{{
			Severity: bide.SeverityWarning, Subject: subject,
			Problem: fmt.Sprintf("holds %d messages that wait for a consumer", q.Messages), Remedy: "start more consumers",
		}}
	case q.Consumers == 0:
		return []bide.Finding{{Severity: bide.SeverityWarning, Subject: subject, Problem: "has no consumer", Remedy: "start a consumer"}}
	default:
		return nil
	}
}

const managementSubject = "management API"

// checkManagement reports what only the management API shows.
func checkManagement(ctx context.Context, cfg Config) []bide.Finding {
	if cfg.ManagementURL == "" {
		return []bide.Finding{{
			Severity: bide.SeverityInfo, Subject: managementSubject,
			Problem: "policies, alarms and queues that are left over were not looked for", Remedy: "set the management URL",
		}}
	}
	m, err := newManagement(cfg)
	if err != nil {
		return bide.FindingsOf(managementSubject, err)
	}
	var findings []bide.Finding
	if queues, err := m.statistics(ctx, cfg); err != nil {
		findings = append(findings, unread("queues and policies", err))
	} else {
		findings = append(findings, cfg.policyFindings(queues)...)
		findings = append(findings, cfg.queueFindings(queues)...)
	}
	if nodes, err := m.nodes(ctx); err != nil {
		findings = append(findings, unread("alarms", err))
	} else {
		findings = append(findings, alarmFindings(nodes)...)
	}
	if cfg.QueueType == Quorum {
		findings = append(findings, m.checkFlag(ctx)...)
	}
	return findings
}

func unread(what string, err error) bide.Finding {
	return bide.Finding{
		Severity: bide.SeverityWarning, Subject: managementSubject, Problem: fmt.Sprintf("%s were not checked: %v", what, err),
		Remedy: "give the management URL's user the tag monitoring and access to the virtual host",
	}
}

// checkFlag looks for the feature flag that at-least-once dead-lettering needs.
func (m *management) checkFlag(ctx context.Context) []bide.Finding {
	off, err := m.disabledFlag(ctx, "stream_queue")
	switch {
	case errors.Is(err, errDenied):
		return []bide.Finding{{
			Severity: bide.SeverityInfo, Subject: managementSubject,
			Problem: "shows feature flags to administrators only, so that stream_queue was not checked",
			Remedy:  "see that rabbitmqctl list_feature_flags has it enabled, if the broker was upgraded from 3.8",
		}}
	case err != nil:
		return []bide.Finding{unread("feature flags", err)}
	case off:
		return []bide.Finding{{
			Severity: bide.SeverityError, Subject: "feature flag stream_queue",
			Problem: "is disabled: dead-lettering falls back to at-most-once", Remedy: "rabbitmqctl enable_feature_flag stream_queue",
		}}
	default:
		return nil
	}
}

// queueFindings says what state the ledger's queues are in, and which of them
// the configuration does not know.
func (c Config) queueFindings(queues map[string]queueInfo) []bide.Finding {
	var findings []bide.Finding
	configured := c.Queues()
	for name, q := range queues {
		report := func(severity bide.Severity, problem, remedy string) {
			findings = append(findings, bide.Finding{Severity: severity, Subject: "queue " + name, Problem: problem, Remedy: remedy})
		}
		if len(q.Members) > 0 && 2*len(q.Online) <= len(q.Members) {
			report(bide.SeverityError, fmt.Sprintf("has %d of %d members online, no majority", len(q.Online), len(q.Members)), "start the missing nodes")
		}
		switch {
		case slices.Contains(configured, name):
		case strings.HasSuffix(name, ".delivery"):
			report(bide.SeverityInfo, fmt.Sprintf("is the delivery queue of the other queue type and holds %d messages", q.Messages), "consumers empty it; delete it when no tier of its type is left")
		default:
			report(bide.SeverityInfo, fmt.Sprintf("is a tier that the configuration does not have and holds %d messages", q.Messages), "it drains by itself; delete it when it is empty")
		}
	}
	return findings
}

func alarmFindings(nodes []node) []bide.Finding {
	var findings []bide.Finding
	for _, n := range nodes {
		report := func(severity bide.Severity, problem, remedy string) {
			findings = append(findings, bide.Finding{Severity: severity, Subject: "broker node " + n.Name, Problem: problem, Remedy: remedy})
		}
		if !n.Running {
			report(bide.SeverityWarning, "does not run", "start it")
		}
		if n.MemoryAlarm {
			report(bide.SeverityWarning, "has a memory alarm: the broker takes no messages", "give it memory or raise vm_memory_high_watermark")
		}
		if n.DiskAlarm {
			report(bide.SeverityWarning, "has a disk alarm: the broker takes no messages", "free disk space or lower disk_free_limit")
		}
	}
	return findings
}
