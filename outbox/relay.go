package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide"
)

// Claim takes the WAITING tasks that lie in the windows, marks them SENT and
// journals them as one batch, in one statement. The batch is empty (ID 0) when
// no task meets a window.
func (l *Ledger) Claim(ctx context.Context, windows []bide.Window) (bide.Batch, error) {
	var batch bide.Batch
	levels, from, to, most := make([]int, len(windows)), make([]int64, len(windows)), make([]int64, len(windows)), make([]int, len(windows))
	for i, w := range windows {
		levels[i], from[i], to[i], most[i] = w.Level, w.From.Microseconds(), w.To.Microseconds(), w.Limit
	}
	err := l.inTx(ctx, func(b *pgx.Batch) {
		b.Queue(l.q["claim"], levels, from, to, most).Query(func(rows pgx.Rows) error {
			return scanBatch(rows, &batch)
		})
	})
	if err != nil {
		return bide.Batch{}, fmt.Errorf("claim: %w", err)
	}
	return batch, nil
}

func scanBatch(rows pgx.Rows, batch *bide.Batch) error {
	var c bide.Claimed
	_, err := pgx.ForEachRow(rows, []any{&batch.Now, &batch.ID, &c.TaskID, &c.Level, &c.RunAt}, func() error {
		if c.TaskID != 0 {
			batch.Tasks = append(batch.Tasks, c)
		}
		return nil
	})
	return err
}

// Settle ends a batch. The tasks in back, which the broker refused or may not
// have, become WAITING again unless they have moved on.
func (l *Ledger) Settle(ctx context.Context, batchID int64, back []int64) error {
	err := l.inTx(ctx, func(b *pgx.Batch) { b.Queue(l.q["settle"], batchID, back) })
	if err != nil {
		return fmt.Errorf("settle batch %d: %w", batchID, err)
	}
	return nil
}

// Recover gives back the batches older than the lease, whose relays are dead,
// and returns how many tasks became WAITING again.
func (l *Ledger) Recover(ctx context.Context, lease time.Duration) (int, error) {
	var n int
	err := l.inTx(ctx, func(b *pgx.Batch) { l.queueCounted(b, &n, "recover", lease) })
	if err != nil {
		return 0, fmt.Errorf("recover batches: %w", err)
	}
	return n, nil
}
