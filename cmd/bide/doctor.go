package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/bide-mq/bide/internal/broker"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/outbox"
	"github.com/bide-mq/bide/rabbit"
	"github.com/bide-mq/bide/rocket"
)

type doctorCommand struct {
	Handlers string `help:"The consumers' handlers file; BIDE_HANDLERS_FILE otherwise." placeholder:"FILE" env:"BIDE_HANDLERS_FILE" default:"handlers.yaml"`
	JSON     bool   `help:"Print JSON."`
}

func (c *doctorCommand) Run(ctx context.Context, out io.Writer) error {
	findings := c.examine(ctx)
	if c.JSON {
		if err := printJSON(out, findings); err != nil {
			return err
		}
	} else if err := printFindings(out, findings); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f rabbit.Finding) bool { return f.Severity == rabbit.Error }) {
		return errNo
	}
	return nil
}

func printFindings(out io.Writer, findings []rabbit.Finding) error {
	p := &printer{out: out}
	for _, f := range findings {
		p.printf("%-7s  %s\n", f.Severity, f.String())
	}
	if len(findings) == 0 {
		p.printf("nothing to mend\n")
	}
	return p.err
}

// examine looks at everything it can reach.
func (c *doctorCommand) examine(ctx context.Context) []rabbit.Finding {
	findings := []rabbit.Finding{}
	database, err := config.LoadDatabase()
	if err != nil {
		return append(findings, problem("configuration", err, "see consumer --help"))
	}
	carrier, err := config.LoadBroker()
	if err != nil {
		findings = append(findings, problem("configuration", err, "see consumer --help"))
	}
	pool, err := openPool(ctx, database)
	if err != nil {
		return append(findings, problem("database", err, ""))
	}
	defer pool.Close()
	ledger, err := outbox.Open(ctx, pool, outbox.Schema(database.Schema))
	if err != nil {
		return append(findings, problem("ledger", err, ""))
	}
	findings = append(findings, examineLedger(ctx, ledger)...)
	findings = append(findings, examineHandlers(ctx, c.Handlers, pool)...)
	switch carrier.Broker {
	case config.RabbitMQ:
		findings = append(findings, rabbit.Check(ctx, broker.Rabbit(*carrier, ledger.ID()))...)
	case config.RocketMQ:
		for _, f := range rocket.Check(ctx, broker.Rocket(*carrier, ledger.ID())) {
			findings = append(findings, rabbit.Finding{Severity: rabbit.Severity(f.Severity), Subject: f.Subject, Problem: f.Problem, Remedy: f.Remedy})
		}
	}
	return findings
}

func problem(subject string, err error, remedy string) rabbit.Finding {
	return rabbit.Finding{Severity: rabbit.Error, Subject: subject, Problem: err.Error(), Remedy: remedy}
}

func examineLedger(ctx context.Context, ledger *outbox.Ledger) (findings []rabbit.Finding) {
	d, err := ledger.Diagnose(ctx)
	if err != nil {
		return []rabbit.Finding{problem("ledger", err, "")}
	}
	add := func(applies bool, severity rabbit.Severity, subject, text, remedy string) {
		if applies {
			findings = append(findings, rabbit.Finding{Severity: severity, Subject: subject, Problem: text, Remedy: remedy})
		}
	}
	add(d.ServerVersion < 140000, rabbit.Error, "database", fmt.Sprintf("server version %d", d.ServerVersion), "use PostgreSQL 14 or later")
	add(d.Isolation != "read committed", rabbit.Info, "database", "transactions are "+d.Isolation+" by default",
		"Bide's own are READ COMMITTED all the same; the application's schedule may meet serialization failures, which it must retry")
	add(d.DeadlockTimeout < 500, rabbit.Warning, "database", fmt.Sprintf("deadlock_timeout is %d ms, which leaves executions very little time", d.DeadlockTimeout), "set it to 1s, the default")
	add(d.Stray > 0, rabbit.Warning, "history", fmt.Sprintf("%d finished tasks are in the default partition: housekeeping has been failing", d.Stray), "look for \"housekeeping\" in the consumers' logs")
	add(d.DaysAhead < 2, rabbit.Warning, "history", fmt.Sprintf("partitions exist for %d days ahead", d.DaysAhead), "run a consumer as the schema's owner, and look for \"housekeeping\" in its log")
	add(!d.Owner, rabbit.Warning, "history", "this role does not own the history and cannot make or drop its partitions", "run the consumers as the role that migrates, or grant it to theirs")
	add(d.Failed > 0, rabbit.Warning, "tasks", fmt.Sprintf("%d are FAILED", d.Failed), "bide tasks --state FAILED, mend the cause, then bide requeue")
	add(d.StaleBatches > 0, rabbit.Warning, "relay", fmt.Sprintf("%d batches of dead relays wait to be taken over", d.StaleBatches), "start a producer")
	add(d.OldestTransaction > 10*time.Minute, rabbit.Warning, "database", fmt.Sprintf("a transaction has been open for %s and keeps dead rows from being removed", d.OldestTransaction.Round(time.Second)), "end it; see pg_stat_activity")
	overdue, err := ledger.OldestOverdue(ctx)
	add(err == nil && overdue > 10*time.Second, rabbit.Error, "tasks", fmt.Sprintf("the oldest has been overdue for %s", overdue.Round(time.Second)),
		"run a consumer that has a handler for it; see bide tasks --overdue 10s")
	return findings
}

// examineHandlers checks the handlers file where there is one.
func examineHandlers(ctx context.Context, path string, db handler.DB) (findings []rabbit.Finding) {
	set, err := handler.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []rabbit.Finding{{Severity: rabbit.Info, Subject: path, Problem: "no such file, so handlers were not checked", Remedy: "name it by --handlers"}}
	}
	if err == nil {
		err = set.Prepare(ctx, db)
	}
	if err != nil {
		return []rabbit.Finding{problem("handlers", err, "")}
	}
	advice, err := set.Advise(ctx, db)
	if err != nil {
		return []rabbit.Finding{problem("handlers", err, "")}
	}
	for _, a := range advice {
		findings = append(findings, rabbit.Finding{
			Severity: rabbit.Warning, Subject: fmt.Sprintf("%s:%d", a.File, a.Line), Problem: a.Problem, Remedy: a.Remedy,
		})
	}
	return findings
}
