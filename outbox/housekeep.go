package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// daysAhead is how many days' partitions exist in advance. Housekeeping may
// fail that long before finished tasks land in the default partition.
const daysAhead = 7

// KeepHouse makes the partitions of the days to come, and of past ones whose
// rows are in the default partition, drops those whose days are older than the
// retention, and forgets journals of long dead sweeps. It may run in any number
// of processes: one at a time does the work.
//
// Changing partitions needs locks that queue behind long readers of history
// and hold up whoever comes next, cancels among them. Each change therefore
// gives up after a few hundredths of a second and is tried again next time.
func (l *Ledger) KeepHouse(ctx context.Context, retention time.Duration) error {
	var today time.Time
	if err := l.pool.QueryRow(ctx, "SELECT (now() AT TIME ZONE 'UTC')::date").Scan(&today); err != nil {
		return fmt.Errorf("keep house: %w", err)
	}
	days, err := collect(ctx, l, pgx.RowTo[time.Time], "days", daysAhead)
	faults := []error{err}
	for _, day := range days {
		faults = append(faults, l.alter(ctx, "history_add_day", day))
	}
	names, err := l.outdated(ctx, today.Add(-retention))
	faults = append(faults, err)
	for _, name := range names {
		faults = append(faults, l.alter(ctx, "", name))
	}
	err = l.inTx(ctx, func(b *pgx.Batch) { b.Queue(l.q["forget_sweeps"]) })
	if err := errors.Join(append(faults, err)...); err != nil {
		return fmt.Errorf("keep house: %w", err)
	}
	return nil
}

// alter makes one change to the partitions in a transaction of its own: it
// calls the function with what, or else drops the partition of that name.
func (l *Ledger) alter(ctx context.Context, function string, what any) error {
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, l.q["housekeeping_lock"]).Scan(&mine); err != nil || !mine {
			return err
		}
		if function != "" {
			_, err := tx.Exec(ctx, fmt.Sprintf("SELECT %s.%s($1)", l.schema, function), what)
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf("DROP TABLE IF EXISTS %s.%s", l.schema, what))
		return err
	})
	if err != nil {
		return fmt.Errorf("partition %v: %w", what, err)
	}
	return nil
}

// outdated lists the partitions whose whole day lies before the time.
func (l *Ledger) outdated(ctx context.Context, before time.Time) ([]string, error) {
	names, err := collect(ctx, l, pgx.RowTo[string], "partitions")
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	var old []string
	for _, name := range names {
		day, err := time.Parse("20060102", strings.TrimPrefix(name, "delay_task_history_"))
		if err == nil && !day.AddDate(0, 0, 1).After(before) {
			old = append(old, name)
		}
	}
	return old, nil
}
