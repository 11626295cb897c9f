package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide"
)

// Counts returns the number of live tasks in each state. WAITING and SENT
// beyond 100,000 are estimates.
func (l *Ledger) Counts(ctx context.Context) (map[bide.State]int, error) {
	var waiting, sent, running, failed int
	err := l.inTx(ctx, func(b *pgx.Batch) {
		b.Queue(l.q["counts"]).QueryRow(func(row pgx.Row) error { return row.Scan(&waiting, &sent, &running, &failed) })
	})
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	return map[bide.State]int{bide.Waiting: waiting, bide.Sent: sent, bide.Running: running, bide.Failed: failed}, nil
}

// OldestOverdue returns how long ago the longest overdue task was due, 0 when
// none is overdue.
func (l *Ledger) OldestOverdue(ctx context.Context) (time.Duration, error) {
	var age *time.Duration
	err := l.inTx(ctx, func(b *pgx.Batch) {
		b.Queue(l.q["oldest_overdue"]).QueryRow(func(row pgx.Row) error { return row.Scan(&age) })
	})
	if err != nil {
		return 0, fmt.Errorf("look for the oldest overdue task: %w", err)
	}
	if age == nil {
		return 0, nil
	}
	return *age, nil
}

// Ping asks whether the ledger answers.
func (l *Ledger) Ping(ctx context.Context) error {
	if err := l.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping the ledger: %w", err)
	}
	return nil
}
