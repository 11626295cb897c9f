package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/outbox"
)

// withLedger calls f with the configured ledger.
func withLedger(ctx context.Context, f func(*outbox.Ledger) error) error {
	cfg, err := config.LoadDatabase()
	if err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	pool, err := openPool(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	ledger, err := outbox.Open(ctx, pool, outbox.Schema(cfg.Schema))
	if err != nil {
		return err
	}
	return f(ledger)
}

func openPool(ctx context.Context, cfg *config.Database) (*pgxpool.Pool, error) {
	poolConfig, err := outbox.PoolConfig(cfg.DatabaseURL, 4)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return pool, nil
}

type migrateCommand struct {
	Grant string `help:"Also let this database role schedule, cancel, reschedule and look at tasks, as an application does." placeholder:"ROLE"`
}

func (c *migrateCommand) Run(ctx context.Context, out io.Writer) error {
	cfg, err := config.LoadDatabase()
	if err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	schema := outbox.Schema(cfg.Schema)
	version, err := migrate(ctx, cfg.DatabaseURL, schema, c.Grant)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "schema %s is at version %d\n", schema, version)
	return err
}

func migrate(ctx context.Context, url string, schema outbox.Schema, grantee string) (int, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	version, err := outbox.Migrate(ctx, conn, schema)
	if err != nil || grantee == "" {
		return version, err
	}
	return version, outbox.Grant(ctx, conn, schema, grantee)
}

type tasksCommand struct {
	ID      int64          `help:"The one with this id." placeholder:"N"`
	Type    string         `help:"Those of this biz_type." placeholder:"BIZ_TYPE"`
	BizID   string         `help:"Those of this biz_id." placeholder:"BIZ_ID"`
	State   string         `help:"Those in this state: WAITING, SENT, RUNNING or FAILED; DONE, SKIPPED or CANCELLED." placeholder:"STATE" enum:"WAITING,SENT,RUNNING,FAILED,DONE,SKIPPED,CANCELLED," default:""`
	Overdue *time.Duration `help:"Those overdue by at least this much, such as 10s; 0s for any." placeholder:"DURATION"`
	Limit   int            `help:"At most so many, the latest first." default:"50"`
	JSON    bool           `help:"Print JSON."`
}

// Validate is called by the parser, so that its error is one of usage.
func (c *tasksCommand) Validate() error {
	if c.Limit < 1 {
		return fmt.Errorf("--limit=%d: want at least 1", c.Limit)
	}
	return nil
}

func (c *tasksCommand) Run(ctx context.Context, out io.Writer) error {
	return withLedger(ctx, func(l *outbox.Ledger) error {
		tasks, err := l.Find(ctx, outbox.Filter{
			ID: c.ID, BizType: c.Type, BizID: c.BizID, State: c.State, Overdue: c.Overdue, Limit: c.Limit,
		})
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(out, tasks)
		} else {
			err = printTasks(out, tasks)
		}
		if err == nil && len(tasks) == 0 {
			return errNo
		}
		return err
	})
}

func printTasks(out io.Writer, tasks []outbox.Record) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tTYPE\tBIZ_ID\tSTATE\tFIRE_AT\tRUN_AT\tFINISHED_AT\tVIA\tSENDS\tATTEMPTS\tLAST_ERROR")
	for _, t := range tasks {
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", t.ID, t.BizType, t.BizID, t.State,
			stamp(&t.FireAt), stamp(t.RunAt), stamp(t.FinishedAt), t.Via, t.Sends, t.Attempts, oneLine(t.LastError))
	}
	return w.Flush()
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}

// oneLine keeps a table a table.
func oneLine(s string) string {
	s, _, more := strings.Cut(s, "\n")
	if more {
		s += " …"
	}
	return s
}

type cancelCommand struct {
	Type  string `arg:"" name:"biz-type" help:"What was to be done, such as close_order."`
	BizID string `arg:"" help:"What it was to be done for, such as an order's id."`
	JSON  bool   `help:"Print JSON."`
}

func (c *cancelCommand) Run(ctx context.Context, out io.Writer) error {
	return withLedger(ctx, func(l *outbox.Ledger) error {
		answer, err := l.Cancel(ctx, c.Type, c.BizID)
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(out, map[string]string{"biz_type": c.Type, "biz_id": c.BizID, "answer": string(answer)})
		} else {
			_, err = fmt.Fprintf(out, "%s for %s: %s\n", c.Type, c.BizID, cancelText(answer))
		}
		if err == nil && answer != outbox.Cancelled && answer != outbox.Requested {
			return errNo
		}
		return err
	})
}

func cancelText(answer outbox.Answer) string {
	switch answer {
	case outbox.Cancelled:
		return string(answer)
	case outbox.Requested:
		return "in execution now; cancelled if that rolls back or retries"
	case outbox.TooLate:
		return "too late, it has been executed"
	default:
		return "no such task"
	}
}

type requeueCommand struct {
	ID    int64  `help:"The one with this id." placeholder:"N"`
	Type  string `help:"Those of this biz_type." placeholder:"BIZ_TYPE"`
	BizID string `help:"Those of this biz_id." placeholder:"BIZ_ID"`
	All   bool   `help:"All of them."`
	JSON  bool   `help:"Print JSON."`
}

// Validate is called by the parser, so that its error is one of usage.
func (c *requeueCommand) Validate() error {
	if c.All == (c.ID != 0 || c.Type != "" || c.BizID != "") {
		return errors.New("say which tasks: by --id, --type or --biz-id, or --all alone")
	}
	return nil
}

func (c *requeueCommand) Run(ctx context.Context, out io.Writer) error {
	return withLedger(ctx, func(l *outbox.Ledger) error {
		n, err := l.Requeue(ctx, outbox.Filter{ID: c.ID, BizType: c.Type, BizID: c.BizID})
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(out, map[string]int{"requeued": n})
		} else {
			_, err = fmt.Fprintf(out, "requeued %d\n", n)
		}
		if err == nil && n == 0 {
			return errNo
		}
		return err
	})
}

type auditCommand struct {
	JSON bool `help:"Print JSON."`
}

func (c *auditCommand) Run(ctx context.Context, out io.Writer) error {
	return withLedger(ctx, func(l *outbox.Ledger) error {
		audited, err := l.Audit(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(out, audited)
		} else {
			err = printAudit(out, audited)
		}
		for _, a := range audited {
			if err == nil && a.Broken > 0 {
				return errNo
			}
		}
		return err
	})
}

func printAudit(out io.Writer, audited []outbox.Audited) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, a := range audited {
		verdict := "kept"
		if a.Broken > 0 {
			verdict = fmt.Sprintf("broken by %d: %v", a.Broken, a.Examples)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", a.Promise, a.Claim, verdict)
	}
	return w.Flush()
}
