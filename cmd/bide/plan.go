package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/broker"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rocket"
)

type planCommand struct {
	Delay time.Duration `arg:"" help:"How long from now a task is due, such as 25m or 1h30m."`
	JSON  bool          `help:"Print JSON."`
}

func (c *planCommand) Run(ctx context.Context, out io.Writer) error {
	cfg, err := config.LoadLevels()
	if err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	r, err := routesOf(ctx, cfg)
	if err != nil {
		return err
	}
	j := r.plan.Describe(c.Delay, r.nominal)
	if c.JSON {
		return printJSON(out, journeyJSON(cfg.Broker, j))
	}
	return r.print(out, cfg.Broker, j)
}

// routes is what the relay would plan with, and the levels as people call them.
type routes struct {
	plan    levels.Plan
	nominal levels.Table
}

// routesOf asks RocketMQ's brokers what they can do; RabbitMQ's levels are ours
// to choose. Without a broker everything is the sweep's.
func routesOf(ctx context.Context, cfg *config.Levels) (routes, error) {
	var r routes
	caps := bide.Capabilities{Lead: cfg.DriverLead(), Window: 1}
	switch cfg.Broker {
	case config.None:
		return r, nil
	case config.RocketMQ:
		carrier, err := config.LoadBroker()
		if err != nil {
			return r, fmt.Errorf("configuration:\n%w", err)
		}
		facts, err := rocket.Discover(ctx, broker.Rocket(*carrier, bide.LedgerID{1}))
		if err != nil {
			return r, err
		}
		caps.Delays, caps.Timers, caps.Horizon = facts.Levels(), facts.Mode == rocket.Timers, facts.Horizon
		if r.nominal = levels.Table(caps.Delays); caps.Timers {
			r.nominal = levels.RocketMQ()
		}
	default:
		var err error
		r.nominal = cfg.Tiers()
		if caps.Delays, err = r.nominal.Less(caps.Lead + cfg.Slack); err != nil {
			return r, fmt.Errorf("BIDE_RABBITMQ_TIERS: %w", err)
		}
	}
	var err error
	r.plan, err = levels.NewPlan(caps, cfg.Slack)
	return r, err
}

func (r routes) print(out io.Writer, by string, j levels.Journey) error {
	p := &printer{out: out}
	p.printf("a task due in %s, by %s:\n", j.Delay, by)
	if j.Kind == levels.Sweep {
		p.printf("  in the ledger until it is due, then the sweep takes it\n")
		if by != config.None {
			p.printf("  (nearer than any level: a message could not be relied on to arrive in time)\n")
		}
		return p.err
	}
	p.printf("  ledger   %s\n", j.Wait)
	p.printf("  broker   %s, %s\n", j.Broker.Min, r.name(j.Level))
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

func (r routes) name(level int) string {
	switch level {
	case bide.LevelNone:
		return "level 0 (undelayed)"
	case bide.LevelTimer:
		return "a timer"
	default:
		return fmt.Sprintf("level %d (%s)", level, r.nominal[level-1])
	}
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
