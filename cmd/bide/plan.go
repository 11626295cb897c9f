package main

import (
	"fmt"
	"io"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/levels"
)

type planCommand struct {
	Delay time.Duration `arg:"" help:"A delay such as 25m or 1h30m."`
	JSON  bool          `help:"Print JSON."`
}

func (c *planCommand) Run(out io.Writer) error {
	cfg, err := config.LoadLevels()
	if err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	plan, err := planOf(cfg)
	if err != nil {
		return err
	}
	j := plan.Describe(c.Delay, cfg.Tiers())
	if c.JSON {
		return printJSON(out, journeyJSON(cfg.Broker, j))
	}
	return printJourney(out, cfg, j)
}

// planOf is the relay's plan; the zero plan, in which everything is the
// sweep's, without a broker.
func planOf(cfg *config.Levels) (levels.Plan, error) {
	if cfg.Broker == config.None {
		return levels.Plan{}, nil
	}
	delays, err := cfg.Tiers().Less(cfg.Lead + cfg.Slack)
	if err != nil {
		return levels.Plan{}, fmt.Errorf("BIDE_RABBITMQ_TIERS: %w", err)
	}
	return levels.NewPlan(bide.Capabilities{Delays: delays, Lead: cfg.Lead, Window: 1}, cfg.Slack)
}

func printJourney(out io.Writer, cfg *config.Levels, j levels.Journey) error {
	p := &printer{out: out}
	p.printf("a task due in %s, by %s:\n", j.Delay, cfg.Broker)
	if j.Kind == levels.Sweep {
		p.printf("  in the ledger until it is due, then the sweep takes it\n")
		if cfg.Broker != config.None {
			p.printf("  (nearer than any level: a message could not be relied on to arrive in time)\n")
		}
		return p.err
	}
	p.printf("  ledger   %s\n", j.Wait)
	p.printf("  broker   %s, level %s\n", j.Broker.Min, levelName(cfg, j.Level))
	p.printf("  hold     up to %s in the worker's memory, to the due time\n", j.Hold.Max)
	switch {
	case j.Rounded.Nominal == 0:
		p.printf("rounding up: no level is long enough; a plain delay queue could not carry it\n")
	case j.Rounded.Late == 0:
		p.printf("rounding up: to the level of %s, nothing late\n", j.Rounded.Nominal)
	default:
		p.printf("rounding up: to the level of %s, %s late\n", j.Rounded.Nominal, j.Rounded.Late)
	}
	return p.err
}

func levelName(cfg *config.Levels, level int) string {
	if level == bide.LevelNone {
		return "0 (undelayed)"
	}
	return fmt.Sprintf("%d (%s)", level, cfg.Tiers()[level-1])
}

// printer keeps the first error of many writes.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// journey is a levels.Journey with durations in milliseconds.
type journey struct {
	Broker    string `json:"broker"`
	DelayMS   int64  `json:"delay_ms"`
	By        string `json:"by"`
	WaitMS    int64  `json:"ledger_ms"`
	Level     int    `json:"level"`
	BrokerMS  int64  `json:"broker_ms"`
	HoldMS    int64  `json:"hold_most_ms"`
	RoundedMS int64  `json:"rounded_level_ms"`
	LateMS    int64  `json:"rounded_late_ms"`
}

func journeyJSON(brokerName string, j levels.Journey) journey {
	return journey{
		Broker: brokerName, DelayMS: j.Delay.Milliseconds(), By: j.Kind.String(), WaitMS: j.Wait.Milliseconds(),
		Level: j.Level, BrokerMS: j.Broker.Min.Milliseconds(), HoldMS: j.Hold.Max.Milliseconds(),
		RoundedMS: j.Rounded.Nominal.Milliseconds(), LateMS: j.Rounded.Late.Milliseconds(),
	}
}
