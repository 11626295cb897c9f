package rocket

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bide-mq/bide"
)

const (
	// firstWithTimers is the ordinal of version 5.0.0 (MQVersion.java). Each
	// release before 5.0 has a lower one, each since a higher one.
	firstWithTimers = 413
	// horizonMargin keeps the horizon below the broker's maximum, which it
	// applies by its own clock.
	horizonMargin = 10 * time.Second
	// leastHorizon leaves the planner room above the 1.5 s that tasks are sent
	// undelayed from.
	leastHorizon = 5 * time.Second
)

// Facts is what a driver must know of the brokers before the first message.
type Facts struct {
	// Mode is Levels or Timers, whatever was configured.
	Mode Mode
	// Horizon is the longest delay to use a timer for; 0 with levels.
	Horizon time.Duration
	// Brokers are the masters that were asked; none where every fact that
	// matters is configured.
	Brokers []BrokerFacts

	table table
}

// BrokerFacts is what one broker says of itself.
type BrokerFacts struct {
	Name, Address string
	// Version is an ordinal of RocketMQ's own (MQVersion.java): 413 is 5.0.0.
	Version int
	// Settings is the broker's configuration; nil where it was denied.
	Settings map[string]string
	// Denied is the broker's reason; nil where it answered.
	Denied error
}

// Levels describes the levels in use, as the broker's table has them but
// ascending; empty with timers.
func (f Facts) Levels() []time.Duration { return f.table.delays() }

// capabilities translates the facts for the loops.
func (f Facts) capabilities(cfg Config) bide.Capabilities {
	caps := bide.Capabilities{Lead: cfg.Lead, Window: cfg.Window}
	if f.Mode == Timers {
		caps.Timers, caps.Horizon = true, f.Horizon
	} else {
		caps.Delays = f.table.delays()
	}
	return caps
}

// same reports whether a publisher made for f may go on with g.
func (f Facts) same(g Facts) bool {
	return f.Mode == g.Mode && f.Horizon == g.Horizon && slices.Equal(f.table, g.table)
}

func (b BrokerFacts) maxDelay() (time.Duration, error) {
	text := b.Settings["timerMaxDelaySec"]
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds <= 0 {
		return 0, fmt.Errorf("timerMaxDelaySec %q: want a number of seconds", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

// ordinalOf translates a configured version. Only the line counts.
func ordinalOf(version string) (int, error) {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "V"), ".")
	switch major {
	case "4":
		return firstWithTimers - 1, nil
	case "5":
		return firstWithTimers, nil
	}
	return 0, fmt.Errorf("version %q: want one of the 4.x or 5.x line, such as 4.9.7", version)
}

// decide chooses the mode by configuration and answers, and refuses what
// cannot work.
func decide(cfg Config, brokers []BrokerFacts) (Facts, error) {
	facts := Facts{Mode: cfg.Mode, Brokers: brokers}
	noTimers := cfg.noTimers(brokers)
	if cfg.Mode == Auto {
		facts.Mode = Timers
		if noTimers != nil {
			facts.Mode = Levels
		}
	}
	var err error
	if facts.Mode == Levels {
		facts.table, err = cfg.tableOf(brokers)
		return facts, err
	}
	if noTimers != nil {
		return Facts{}, noTimers
	}
	facts.Horizon, err = cfg.horizonOf(brokers)
	return facts, err
}

// mustAsk reports whether the configuration leaves something to be asked.
func (c Config) mustAsk() bool {
	ordinal, err := ordinalOf(c.Version)
	switch {
	case c.Mode == Levels:
		return c.Table == ""
	case err != nil:
		return true // no version is configured
	case ordinal < firstWithTimers:
		return c.Mode == Auto && c.Table == ""
	}
	return c.MaxDelay == 0
}

// noTimers says why timers cannot be used, nil when they can.
func (c Config) noTimers(brokers []BrokerFacts) error {
	if c.Version != "" {
		ordinal, err := ordinalOf(c.Version)
		if err != nil {
			return err
		}
		if ordinal < firstWithTimers {
			return timersFault("configured version "+c.Version, "a 4.x broker delivers timer messages at once")
		}
	}
	if len(brokers) == 0 && (c.Version == "" || c.MaxDelay == 0) {
		return errors.New("no broker was asked for its timers")
	}
	for _, b := range brokers {
		switch {
		case c.Version == "" && b.Version < firstWithTimers:
			return timersFault(b.subject(), fmt.Sprintf("is of the 4.x line (version ordinal %d), which delivers timer messages at once", b.Version))
		case c.MaxDelay > 0:
		case b.Settings == nil:
			return b.denied("set the broker's timerMaxDelaySec as the maximum delay")
		case b.Settings["timerWheelEnable"] != "true":
			return timersFault(b.subject(), "has timerWheelEnable=false and refuses timer messages")
		}
	}
	return nil
}

func timersFault(subject, problem string) error {
	return &bide.Fault{Finding: bide.Finding{
		Severity: bide.SeverityError, Subject: subject, Problem: problem,
		Remedy: "choose mode levels or auto, or a broker of the 5.x line with timerWheelEnable=true",
	}}
}

// tableOf returns the configured table, or the brokers' where they agree.
func (c Config) tableOf(brokers []BrokerFacts) (table, error) {
	if c.Table != "" {
		return parseTable(c.Table)
	}
	if len(brokers) == 0 {
		return nil, errors.New("no broker was asked for its levels")
	}
	var t table
	for i, b := range brokers {
		if b.Settings == nil {
			return nil, b.denied("set the broker's messageDelayLevel as the table, or, for 5.x, its timerMaxDelaySec as the maximum delay")
		}
		theirs, err := parseTable(b.Settings["messageDelayLevel"])
		if err != nil {
			return nil, &bide.Fault{Err: err, Finding: bide.Finding{
				Severity: bide.SeverityError, Subject: b.subject(), Problem: "has a messageDelayLevel that cannot be read", Remedy: "correct it at the broker",
			}}
		}
		if i > 0 && !slices.Equal(t, theirs) {
			return nil, &bide.Fault{Finding: bide.Finding{
				Severity: bide.SeverityError, Subject: b.subject(),
				Problem: fmt.Sprintf("has the messageDelayLevel %q, and %s has %q", b.Settings["messageDelayLevel"], brokers[0].Name, brokers[0].Settings["messageDelayLevel"]),
				Remedy:  "give all brokers of the cluster the same messageDelayLevel",
			}}
		}
		t = theirs
	}
	return t, nil
}

// horizonOf checks the configured horizon against the least that the brokers
// take, or chooses one.
func (c Config) horizonOf(brokers []BrokerFacts) (time.Duration, error) {
	most, subject := c.MaxDelay, "configured maximum delay"
	if most == 0 {
		for _, b := range brokers {
			theirs, err := b.maxDelay()
			if err != nil {
				return 0, &bide.Fault{Err: err, Finding: bide.Finding{
					Severity: bide.SeverityError, Subject: b.subject(), Problem: "has a timerMaxDelaySec that cannot be read", Remedy: "set it as the maximum delay",
				}}
			}
			if most == 0 || theirs < most {
				most, subject = theirs, b.subject()
			}
		}
	}
	limit := most - horizonMargin
	switch {
	case limit < leastHorizon:
		return 0, timersFault(subject, fmt.Sprintf("takes timers up to %s only, want at least %s", most, leastHorizon+horizonMargin))
	case c.Horizon == 0:
		return min(defaultHorizon, limit), nil
	case c.Horizon > limit:
		return 0, &bide.Fault{Finding: bide.Finding{
			Severity: bide.SeverityError, Subject: subject,
			Problem: fmt.Sprintf("takes timers up to %s, and the horizon is %s", most, c.Horizon),
			Remedy:  fmt.Sprintf("set the horizon to %s or less, or raise timerMaxDelaySec at the broker", limit),
		}}
	}
	return c.Horizon, nil
}

func (b BrokerFacts) subject() string { return fmt.Sprintf("broker %s at %s", b.Name, b.Address) }

// denied is the fault of a question that was not answered.
func (b BrokerFacts) denied(remedy string) error {
	return &bide.Fault{Err: b.Denied, Finding: bide.Finding{
		Severity: bide.SeverityError, Subject: b.subject(),
		Problem: "does not tell its configuration (request code 26)", Remedy: "check the access key and the secret key and allow the question, or " + remedy,
	}}
}
