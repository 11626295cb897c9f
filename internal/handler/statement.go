package handler

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/bide-mq/bide"
)

// statement is a handler that a handlers file describes.
type statement struct {
	bizType string
	source  *source
	start   place
	// target is the row to lock; nil for a statement that does its own locking.
	target *target
	lockAt place
	query  text
	batch  int
	// plan is nil until Prepare has found the statement sound.
	plan *plan
}

var _ Handler = (*statement)(nil)

// plan is what Prepare learns from the database.
type plan struct {
	// ids is the type of $1.
	ids sqlType
	// returned is the array type of the first column.
	returned uint32
	// columns counts what the statement returns: ids, or ids and verdicts.
	columns int
	// lock is the SQL that locks the target, if there is one.
	lock string
	// unique says that the target's key is.
	unique bool
}

// sqlType is a type of the database.
type sqlType struct {
	oid  uint32
	name string
}

// Reasons of the results that a statement gives.
const (
	reasonNoRow       = "no such row"
	reasonLocked      = "row held by another transaction"
	reasonNotReturned = "not returned by the statement"
	reasonSkip        = "statement says skip"
	reasonRetry       = "statement says retry"
)

// Batch is how many tasks may share a transaction; 1 without lock.
func (h *statement) Batch() int { return h.batch }

// Handle locks the tasks' rows and runs the statement for those it got, in two
// round trips, one without lock.
func (h *statement) Handle(ctx context.Context, conn *pgx.Conn, tasks []bide.Task) ([]Result, error) {
	results, err := h.handle(ctx, conn, tasks)
	if err != nil {
		return nil, fmt.Errorf("handler %q (%s:%d): %w", h.bizType, h.source.name, h.start.line, err)
	}
	return results, nil
}

func (h *statement) handle(ctx context.Context, conn *pgx.Conn, tasks []bide.Task) ([]Result, error) {
	switch {
	case h.plan == nil:
		return nil, errors.New("not prepared")
	case h.target == nil && len(tasks) > 1:
		return nil, fmt.Errorf("%d tasks at once, without lock each runs alone", len(tasks))
	}
	results := make([]Result, len(tasks))
	chosen, err := h.choose(ctx, conn, tasks, results)
	if err != nil || len(chosen) == 0 {
		return results, err
	}
	return results, h.execute(ctx, conn, tasks, chosen, results)
}

// choice is a task that the statement is given, and its id as the row spells it.
type choice struct {
	task int
	id   *string
}

// choose locks the rows and says for which tasks the statement is to run. The
// others have their result.
func (h *statement) choose(ctx context.Context, conn *pgx.Conn, tasks []bide.Task, results []Result) ([]choice, error) {
	chosen := make([]choice, 0, len(tasks))
	if h.target == nil {
		for i := range tasks {
			chosen = append(chosen, choice{task: i, id: &tasks[i].BizID})
		}
		return chosen, nil
	}
	rows, err := h.lockRows(ctx, conn, tasks)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", h.target, err)
	}
	for i, row := range rows {
		switch key, ours := row[0], *row[1] == "t"; {
		case !ours:
			results[i] = Result{Locked, reasonLocked}
		case key == nil:
			results[i] = Result{Skipped, reasonNoRow}
		default:
			chosen = append(chosen, choice{task: i, id: key})
		}
	}
	return chosen, nil
}

//go:embed lock.sql
var lockSQL string

// lockStatement is lock.sql for one target.
func lockStatement(t target) string {
	table, key := t.quoted()
	return strings.NewReplacer("{table}", table, "{key}", key).Replace(lockSQL)
}

// lockRows returns for each task the row's key and whether the row is ours, as
// lock.sql says.
func (h *statement) lockRows(ctx context.Context, conn *pgx.Conn, tasks []bide.Task) ([][]*string, error) {
	ids := make([]*string, len(tasks))
	for i := range tasks {
		ids[i] = &tasks[i].BizID
	}
	wanted, err := array(conn, h.plan.ids.oid, ids)
	if err != nil {
		return nil, err
	}
	rows, err := fetch(ctx, conn, len(tasks)+1, h.plan.lock, wanted)
	if err == nil && len(rows) != len(tasks) {
		err = fmt.Errorf("%d rows for %d ids", len(rows), len(tasks))
	}
	return rows, err
}

// execute runs the statement for the chosen tasks and fills in their results.
func (h *statement) execute(ctx context.Context, conn *pgx.Conn, tasks []bide.Task, chosen []choice, results []Result) error {
	ids, payloads := make([]*string, len(chosen)), make([]*string, len(chosen))
	for i, c := range chosen {
		ids[i] = c.id
		if p := tasks[c.task].Payload; p != nil {
			payloads[i] = new(string(p))
		}
	}
	args, err := h.args(conn, ids, payloads)
	if err != nil {
		return err
	}
	// One row more than can be right shows a statement that returns too many.
	rows, err := fetch(ctx, conn, len(chosen)+1, h.query.value, args...)
	if err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	answers, err := h.match(ctx, conn, ids, rows)
	if err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	for _, c := range chosen {
		results[c.task] = Result{Skipped, reasonNotReturned}
		if a, ok := answers[*c.id]; ok {
			results[c.task] = a.result
		}
	}
	return nil
}

// args are $1 and $2. Both are always sent: PostgreSQL takes a declared
// parameter that the statement does not use.
func (h *statement) args(conn *pgx.Conn, ids, payloads []*string) ([]arg, error) {
	first, err := array(conn, h.plan.ids.oid, ids)
	if err != nil {
		return nil, fmt.Errorf("ids: %w", err)
	}
	second, err := array(conn, pgtype.JSONBArrayOID, payloads)
	if err != nil {
		return nil, fmt.Errorf("payloads: %w", err)
	}
	return []arg{first, second}, nil
}
