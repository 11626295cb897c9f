package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/broker"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/outbox"
	"github.com/bide-mq/bide/rabbit"
	"github.com/bide-mq/bide/rocket"
)

type doctorCommand struct {
	Handlers string `help:"The consumers' handlers file." placeholder:"FILE" env:"BIDE_HANDLERS_FILE" default:"handlers.yaml"`
	JSON     bool   `help:"Print JSON."`
}

func (c *doctorCommand) Run(ctx context.Context, out io.Writer) error {
	findings := c.examine(ctx)
	slices.SortStableFunc(findings, bide.WorstFirst)
	if c.JSON {
		if err := printJSON(out, findings); err != nil {
			return err
		}
	} else if err := printFindings(out, findings); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f bide.Finding) bool { return f.Severity == bide.SeverityError }) {
		return errNo
	}
	return nil
}

func printFindings(out io.Writer, findings []bide.Finding) error {
	p := &printer{out: out}
	for _, f := range findings {
		p.printf("%-7s  %s\n", f.Severity, f)
	}
	if len(findings) == 0 {
		p.printf("nothing to mend\n")
	}
	return p.err
}

// examine looks at everything it can reach.
func (c *doctorCommand) examine(ctx context.Context) []bide.Finding {
	database, databaseErr := config.LoadDatabase()
	carrier, carrierErr := config.LoadBroker()
	carrierErr = errors.Join(carrierErr, broker.Validate(*carrier))
	findings := misconfigured(errors.Join(databaseErr, carrierErr))
	if databaseErr != nil {
		return findings
	}
	pool, err := openPool(ctx, database)
	if err != nil {
		return append(findings, bide.FindingsOf("database", err)...)
	}
	defer pool.Close()
	findings = append(findings, examineTransport(pool.Config().ConnConfig)...)
	ledger, err := outbox.Open(ctx, pool, outbox.Schema(database.Schema))
	if err != nil {
		return append(findings, bide.FindingsOf("ledger", err)...)
	}
	findings = append(findings, examineLedger(ctx, ledger)...)
	findings = append(findings, examineHandlers(ctx, c.Handlers, pool)...)
	if carrierErr == nil {
		findings = append(findings, examineBroker(ctx, *carrier, ledger.ID())...)
	}
	return findings
}

// misconfigured makes a finding of each line of a configuration's error.
func misconfigured(err error) []bide.Finding {
	findings := []bide.Finding{}
	if err == nil {
		return findings
	}
	faults := strings.Split(err.Error(), "\n")
	slices.Sort(faults)
	for _, fault := range slices.Compact(faults) { // both parts report an unknown variable
		findings = append(findings, bide.Finding{Severity: bide.SeverityError, Subject: "configuration", Problem: fault})
	}
	return findings
}

// examineHandlers checks the handlers file where there is one.
func examineHandlers(ctx context.Context, path string, db handler.DB) []bide.Finding {
	set, err := handler.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []bide.Finding{{Severity: bide.SeverityInfo, Subject: path, Problem: "no such file, so handlers were not checked", Remedy: "name it by --handlers"}}
	}
	if err == nil {
		err = set.Prepare(ctx, db)
	}
	if err != nil {
		return bide.FindingsOf("handlers", err)
	}
	advice, err := set.Advise(ctx, db)
	if err != nil {
		return bide.FindingsOf("handlers", err)
	}
	return advice
}

func examineBroker(ctx context.Context, carrier config.Broker, ledger bide.LedgerID) []bide.Finding {
	switch carrier.Broker {
	case config.RabbitMQ:
		return rabbit.Check(ctx, broker.Rabbit(carrier, ledger))
	case config.RocketMQ:
		return rocket.Check(ctx, broker.Rocket(carrier, ledger))
	default:
		return nil
	}
}
