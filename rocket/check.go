// Package rocket carries messages through RocketMQ: fixed delay levels on 4.x,
// timer messages on 5.x.
package rocket

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/bide-mq/bide"
)

// Check looks over the installation for the services that use the
// configuration, and returns what it finds, the worst first; what the brokers
// are is part of it. It changes nothing: a topic that is missing stays so.
func Check(ctx context.Context, cfg Config) []bide.Finding {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return bide.FindingsOf("configuration", err)
	}
	findings := cfg.checkNameServers(ctx)
	masters, err := cfg.masters(ctx)
	if err != nil {
		findings = append(findings, bide.FindingsOf(cfg.endpoint(), err)...)
		slices.SortStableFunc(findings, bide.WorstFirst)
		return findings
	}
	links, missing := cfg.connect(ctx, masters)
	defer closeLinks(links)
	for _, err := range missing {
		findings = append(findings, bide.Finding{
			Severity: bide.SeverityError, Subject: cfg.endpoint(), Problem: "lists a broker that cannot be reached: " + err.Error(),
			Remedy: "start it, or open the way to the address that it registered (brokerIP1 in broker.conf); a stopped one is listed for two minutes",
		})
	}
	findings = append(findings, cfg.checkBrokers(ctx, links)...)
	slices.SortStableFunc(findings, bide.WorstFirst)
	return findings
}

// checkNameServers tries each, where the services are content with one.
func (c Config) checkNameServers(ctx context.Context) []bide.Finding {
	var findings []bide.Finding
	for _, address := range c.NameServers {
		one := c
		one.NameServers = []string{address}
		if _, err := one.masters(ctx); err != nil {
			findings = append(findings, bide.Finding{
				Severity: bide.SeverityWarning, Subject: "name server " + address, Problem: "is of no use: " + err.Error(),
				Remedy: "start it, take it off the list, or let the brokers register with it",
			})
		}
	}
	return findings
}

// checkBrokers reports what the brokers are, what that means for the services,
// and what of it loses messages.
func (c Config) checkBrokers(ctx context.Context, links []*link) []bide.Finding {
	var findings []bide.Finding
	facts, err := decide(c, factsOf(links))
	if err != nil {
		findings = append(findings, bide.FindingsOf(c.endpoint(), err)...)
	} else {
		findings = append(findings, bide.Finding{Severity: bide.SeverityInfo, Subject: c.endpoint(), Problem: "delays by " + facts.String()})
	}
	for _, l := range links {
		findings = append(findings, c.checkTopic(l)...)
		findings = append(findings, l.facts.findings(facts.Mode)...)
		findings = append(findings, l.statistics(ctx, c)...)
	}
	return findings
}

func (c Config) checkTopic(l *link) []bide.Finding {
	if l.broker.Queues > 0 {
		return nil
	}
	return []bide.Finding{{
		Severity: bide.SeverityInfo, Subject: "topic " + c.Topic(), Problem: "does not exist yet on " + l.subject(), Remedy: "the services make it when they start",
	}}
}

// rule is one thing that a broker's settings may have wrong.
type rule struct {
	applies         func(b BrokerFacts, mode Mode) bool
	severity        bide.Severity
	problem, remedy string
}

func is(setting, value string) func(BrokerFacts, Mode) bool {
	return func(b BrokerFacts, _ Mode) bool { return b.Settings[setting] == value }
}

func inTimers(condition func(BrokerFacts, Mode) bool) func(BrokerFacts, Mode) bool {
	return func(b BrokerFacts, mode Mode) bool { return mode == Timers && condition(b, mode) }
}

func before(ordinal int) func(BrokerFacts, Mode) bool {
	return func(b BrokerFacts, _ Mode) bool { return b.Version < ordinal }
}

// Ordinals of versions (MQVersion.java).
const (
	version510 = 433
	version520 = 453
)

// rules are the settings that the promises depend on. A lost message makes its
// task late, not lost: the sweep finds it.
func rules() []rule {
	return []rule{
		{
			inTimers(is("timerEnableRetryUntilSuccess", "false")), bide.SeverityWarning,
			"discards a timer message that it failed three times to deliver (timerEnableRetryUntilSuccess=false), as from 5.3.2 on",
			"set timerEnableRetryUntilSuccess=true",
		},
		{
			inTimers(before(version520)), bide.SeverityWarning,
			"is a version that loses timers when it recovers from a crash (RocketMQ issue 7480)", "upgrade to 5.2 or later",
		},
		{
			inTimers(func(b BrokerFacts, _ Mode) bool {
				most, err := b.maxDelay()
				return err == nil && b.Version < version510 && most.Seconds() > 2_147_483
			}), bide.SeverityError,
			"refuses every timer: before 5.1.0 a timerMaxDelaySec above 2147483 overflows (RocketMQ issue 5376)", "lower timerMaxDelaySec",
		},
		{
			inTimers(func(b BrokerFacts, _ Mode) bool {
				most, err := b.maxDelay()
				return err == nil && most < defaultHorizon+horizonMargin
			}), bide.SeverityWarning,
			"takes short timers only (timerMaxDelaySec): tasks wait in the ledger until they are near enough", "raise timerMaxDelaySec to 7210 or more",
		},
		{inTimers(is("timerStopEnqueue", "true")), bide.SeverityError, "has timerStopEnqueue=true: no timer message is delivered", "set it to false"},
		{inTimers(is("timerStopDequeue", "true")), bide.SeverityError, "has timerStopDequeue=true: no timer message is delivered", "set it to false"},
		{
			is("flushDiskType", "ASYNC_FLUSH"), bide.SeverityWarning,
			"confirms messages before they are on disk (flushDiskType=ASYNC_FLUSH): those of the last half second are lost when the machine fails",
			"set flushDiskType=SYNC_FLUSH where the sweep's few seconds matter",
		},
		{
			is("autoCreateTopicEnable", "true"), bide.SeverityInfo,
			"makes topics for whoever names one (autoCreateTopicEnable=true)", "consider false: the services make their own",
		},
		{
			is("autoCreateSubscriptionGroup", "false"), bide.SeverityWarning,
			"does not make consumer groups (autoCreateSubscriptionGroup=false)", "make the services' group: mqadmin updateSubGroup -g GROUP",
		},
	}
}

// findings says what the broker is and which rules its settings break.
func (b BrokerFacts) findings(mode Mode) []bide.Finding {
	if b.Settings == nil {
		return []bide.Finding{{
			Severity: bide.SeverityWarning, Subject: b.subject(), Problem: fmt.Sprintf("does not tell its configuration: %v", b.Denied),
			Remedy: "allow request code 26 to check for settings that lose messages",
		}}
	}
	findings := []bide.Finding{{Severity: bide.SeverityInfo, Subject: b.subject(), Problem: "has " + b.describe()}}
	for _, r := range rules() {
		if r.applies(b, mode) {
			findings = append(findings, bide.Finding{Severity: r.severity, Subject: b.subject(), Problem: r.problem, Remedy: r.remedy})
		}
	}
	return findings
}

// describe shows the settings that the driver goes by.
func (b BrokerFacts) describe() string {
	text := fmt.Sprintf("version ordinal %d, messageDelayLevel %q, flushDiskType %s", b.Version, b.Settings["messageDelayLevel"], b.Settings["flushDiskType"])
	if b.Version >= firstWithTimers {
		text += fmt.Sprintf(", timerWheelEnable %s, timerMaxDelaySec %s, timerEnableRetryUntilSuccess %s",
			b.Settings["timerWheelEnable"], b.Settings["timerMaxDelaySec"], b.Settings["timerEnableRetryUntilSuccess"])
	}
	return text
}

// longBacklog is how many seconds a broker's timers may be behind.
const longBacklog = 2

// statistics reports what the broker's statistics show: its version by name,
// and timers that are late.
func (l *link) statistics(ctx context.Context, c Config) []bide.Finding {
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	info, err := l.conn.RuntimeInfo(ctx)
	if err != nil {
		return []bide.Finding{{
			Severity: bide.SeverityInfo, Subject: l.subject(), Problem: "does not tell its statistics: " + err.Error(), Remedy: "allow request code 28",
		}}
	}
	findings := []bide.Finding{{Severity: bide.SeverityInfo, Subject: l.subject(), Problem: "runs " + info["brokerVersionDesc"]}}
	if behind, err := strconv.Atoi(info["timerReadBehind"]); err == nil && behind > longBacklog {
		findings = append(findings, bide.Finding{
			Severity: bide.SeverityWarning, Subject: l.subject(), Problem: fmt.Sprintf("delivers timers %d s late", behind), Remedy: "look for what keeps its disk busy, or use more brokers",
		})
	}
	return append(findings, l.consumers(ctx, c)...)
}

// consumers reports a group that nobody consumes in.
func (l *link) consumers(ctx context.Context, c Config) []bide.Finding {
	clients, err := l.conn.Consumers(ctx, c.Group())
	if err != nil || len(clients) > 0 {
		return nil
	}
	return []bide.Finding{{Severity: bide.SeverityInfo, Subject: "group " + c.Group(), Problem: "has no consumer at " + l.subject(), Remedy: "start a consumer"}}
}
