package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/bide-mq/bide"
)

// Peek reads the tasks with the given ids, in no order; finished ones are
// missing. Only ID, BizType, RunAt, State, Sends and Reclaims are filled. It
// also returns the database's clock.
func (l *Ledger) Peek(ctx context.Context, ids []int64) ([]bide.Task, time.Time, error) {
	tasks, now, err := l.glance(ctx, func(b *pgx.Batch) *pgx.QueuedQuery { return b.Queue(l.q["peek"], ids) })
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("look up tasks: %w", err)
	}
	return tasks, now, nil
}

// Overdue reads the tasks that [Ledger.LockDue] would lock, filled as by Peek.
func (l *Ledger) Overdue(ctx context.Context, due bide.Due) ([]bide.Task, time.Time, error) {
	tasks, now, err := l.glance(ctx, func(b *pgx.Batch) *pgx.QueuedQuery {
		return b.Queue(l.q["overdue"], due.Types, fromMark(due.WaitingFrom), fromMark(due.SentFrom), due.Grace, due.Limit)
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("look for overdue tasks: %w", err)
	}
	return tasks, now, nil
}

// glance runs a query that gives a few columns of tasks and, in every row, the
// database's clock; id 0 stands for no task.
func (l *Ledger) glance(ctx context.Context, query func(b *pgx.Batch) *pgx.QueuedQuery) (tasks []bide.Task, now time.Time, err error) {
	err = l.inTx(ctx, func(b *pgx.Batch) {
		query(b).Query(func(rows pgx.Rows) error {
			var t bide.Task
			_, err := pgx.ForEachRow(rows, []any{&now, &t.ID, &t.BizType, &t.RunAt, &t.State, &t.Sends, &t.Reclaims}, func() error {
				if t.ID != 0 {
					tasks = append(tasks, t)
				}
				return nil
			})
			return err
		})
	})
	return tasks, now, err
}

// GiveBack makes SENT tasks WAITING again whose messages are spent. runAts are
// the messages' times, parallel to ids; a task with another time has been
// rescheduled and is left alone.
func (l *Ledger) GiveBack(ctx context.Context, ids []int64, runAts []time.Time) (int, error) {
	var n int
	err := l.inTx(ctx, func(b *pgx.Batch) { l.queueCounted(b, &n, "give_back", ids, runAts) })
	if err != nil {
		return 0, fmt.Errorf("give back tasks: %w", err)
	}
	return n, nil
}

// queueCounted queues a statement and leaves in n how many rows it touched.
func (l *Ledger) queueCounted(b *pgx.Batch, n *int, name string, args ...any) {
	b.Queue(l.q[name], args...).Exec(func(tag pgconn.CommandTag) error {
		*n = int(tag.RowsAffected())
		return nil
	})
}

// Backoff is how failed executions are repeated.
type Backoff struct {
	// MaxAttempts is the number of failed executions after which a task is
	// FAILED.
	MaxAttempts int
	// First is the pause after the first failure; it doubles with each one
	// up to Most.
	First, Most time.Duration
}

// Retry counts a failed execution of each task and sets its next attempt, or
// FAILED. errs are the reasons, parallel to ids. Tasks that are no longer due
// or are held by another are left out of the answer.
func (l *Ledger) Retry(ctx context.Context, ids []int64, errs []string, backoff Backoff) ([]bide.Ended, error) {
	ended, err := l.end(ctx, "retry", ids, errs, backoff.MaxAttempts, backoff.First, backoff.Most)
	if err != nil {
		return nil, fmt.Errorf("put off failed tasks: %w", err)
	}
	return ended, nil
}

// Reclaim records that a task is about to be tried alone because an earlier
// execution ended without a word; at the most-th time it becomes FAILED
// instead. ok is false when the task cannot be tried now: it is held by another,
// or its last trial was less than 5 s ago.
func (l *Ledger) Reclaim(ctx context.Context, id int64, most int) (task bide.Ended, ok bool, err error) {
	ended, err := l.end(ctx, "reclaim", id, most, trialPause)
	if err != nil {
		return bide.Ended{}, false, fmt.Errorf("record the trial of task %d: %w", id, err)
	}
	if len(ended) == 0 {
		return bide.Ended{}, false, nil
	}
	return ended[0], true, nil
}

// trialPause keeps the trials of one task apart for longer than a network or a
// failover is likely to lose sessions.
const trialPause = 5 * time.Second

func (l *Ledger) end(ctx context.Context, name string, args ...any) ([]bide.Ended, error) {
	var ended []bide.Ended
	err := l.inTx(ctx, func(b *pgx.Batch) {
		b.Queue(l.q[name], args...).Query(func(rows pgx.Rows) (err error) {
			ended, err = pgx.CollectRows(rows, pgx.RowToStructByPos[bide.Ended])
			return err
		})
	})
	return ended, err
}

// HonourRequests applies the cancels and reschedules that met an execution
// which has ended without finishing its task. It returns how many requests it
// cleared.
func (l *Ledger) HonourRequests(ctx context.Context) (int, error) {
	var n int
	err := l.inTx(ctx, func(b *pgx.Batch) { l.queueCounted(b, &n, "honour") })
	if err != nil {
		return 0, fmt.Errorf("honour requests: %w", err)
	}
	return n, nil
}
