package rabbit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// checkTimeout bounds a check when the broker does not answer.
const checkTimeout = 30 * time.Second

// Check looks over the broker for the services that use the configuration, and
// returns what it finds, the worst first. It changes nothing for them: queues
// that are missing stay so, and two queues of its own are gone afterwards. It
// takes 5 to 15 s, which it waits for the broker's statistics and for a dead
// letter to be tried again.
func Check(ctx context.Context, cfg Config) []Finding {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return []Finding{found("configuration", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var amqpFindings, managementFindings []Finding
	var both sync.WaitGroup
	both.Go(func() { amqpFindings = checkAMQP(ctx, cfg) })
	both.Go(func() { managementFindings = checkManagement(ctx, cfg) })
	both.Wait()
	findings := slices.Concat(amqpFindings, managementFindings)
	if cfg.QueueType == Classic {
		findings = append(findings, Finding{
			Severity: Warning, Subject: "queue type",
			Problem: "classic tiers dead-letter at most once: a message that expires while the delivery queue cannot take it is lost and its task fires late, by the sweep",
			Remedy:  "prefer quorum queues",
		})
	}
	slices.SortStableFunc(findings, worstFirst)
	return findings
}

// checkAMQP connects as the services do and compares the queues that exist.
func checkAMQP(ctx context.Context, cfg Config) []Finding {
	s, err := dial(ctx, cfg, "check")
	if err != nil {
		return []Finding{found("connection to "+cfg.endpoint(), err)}
	}
	defer s.close()
	defer context.AfterFunc(ctx, func() { s.socket.Close() })()
	tiers, err := cfg.tiers()
	if err != nil {
		return []Finding{found("configuration", err)}
	}
	findings := checkQueues(s.conn, append([]queue{cfg.delivery()}, tiers...))
	if cfg.QueueType == Quorum {
		findings = append(findings, checkWorker(ctx, s, cfg)...)
	}
	return findings
}

// checkQueues compares the queues that exist with their declarations, which
// the broker does when they are declared again.
func checkQueues(conn *amqp.Connection, queues []queue) []Finding {
	var findings []Finding
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
			findings = append(findings, found("queue "+q.name, err))
		}
	}
	if len(missing) > 0 {
		findings = append(findings, Finding{
			Severity: Info, Subject: "queues", Problem: "do not exist yet: " + strings.Join(missing, ", "),
			Remedy: "the services declare them when they start",
		})
	}
	return findings
}

// checkManagement reports what only the management API shows.
func checkManagement(ctx context.Context, cfg Config) []Finding {
	const subject = "management API"
	if cfg.ManagementURL == "" {
		return []Finding{{
			Severity: Info, Subject: subject,
			Problem: "policies, alarms and queues that are left over were not looked for", Remedy: "set the management URL",
		}}
	}
	m, err := newManagement(cfg)
	if err != nil {
		return []Finding{found(subject, err)}
	}
	unread := func(what string, err error) Finding {
		return Finding{
			Severity: Warning, Subject: subject, Problem: fmt.Sprintf("%s were not checked: %v", what, err),
			Remedy: "give the management URL's user the tag monitoring and access to the virtual host",
		}
	}
	var findings []Finding
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
	if off, err := m.disabledFlag(ctx, "stream_queue"); err != nil {
		findings = append(findings, unread("feature flags", err))
	} else if off && cfg.QueueType == Quorum {
		findings = append(findings, Finding{
			Severity: Error, Subject: "feature flag stream_queue",
			Problem: "is disabled: dead-lettering falls back to at-most-once", Remedy: "rabbitmqctl enable_feature_flag stream_queue",
		})
	}
	return findings
}

// longBacklog is the length of the delivery queue from which on consumers do
// not keep up.
const longBacklog = 10_000

// queueFindings says what state the ledger's queues are in, and which of them
// the configuration does not know.
func (c Config) queueFindings(queues map[string]queueInfo) []Finding {
	var findings []Finding
	configured := c.Queues()
	for name, q := range queues {
		report := func(severity Severity, problem, remedy string) {
			findings = append(findings, Finding{Severity: severity, Subject: "queue " + name, Problem: problem, Remedy: remedy})
		}
		if len(q.Members) > 0 && 2*len(q.Online) <= len(q.Members) {
			report(Error, fmt.Sprintf("has %d of %d members online, no majority", len(q.Online), len(q.Members)), "start the missing nodes")
		}
		switch {
		case name == c.DeliveryQueue() && q.Messages > longBacklog:
			report(Warning, fmt.Sprintf("holds %d messages that wait for a consumer", q.Messages), "start more consumers")
		case name == c.DeliveryQueue() && q.Consumers != nil && *q.Consumers == 0:
			report(Warning, "has no consumer", "start a consumer")
		case slices.Contains(configured, name):
		case strings.HasSuffix(name, ".delivery"):
			report(Info, fmt.Sprintf("is the delivery queue of the other queue type and holds %d messages", q.Messages), "consumers empty it; delete it when no tier of its type is left")
		default:
			report(Info, fmt.Sprintf("is a tier that the configuration does not have and holds %d messages", q.Messages), "it drains by itself; delete it when it is empty")
		}
	}
	return findings
}

func alarmFindings(nodes []node) []Finding {
	var findings []Finding
	for _, n := range nodes {
		report := func(severity Severity, problem, remedy string) {
			findings = append(findings, Finding{Severity: severity, Subject: "broker node " + n.Name, Problem: problem, Remedy: remedy})
		}
		if !n.Running {
			report(Warning, "does not run", "start it")
		}
		if n.MemoryAlarm {
			report(Warning, "has a memory alarm: the broker takes no messages", "give it memory or raise vm_memory_high_watermark")
		}
		if n.DiskAlarm {
			report(Warning, "has a disk alarm: the broker takes no messages", "free disk space or lower disk_free_limit")
		}
	}
	return findings
}
