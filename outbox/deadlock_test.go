package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// standoff is one deadlock in the making: the payment holds the order and
// wants its task, the worker holds the task and wants the order.
type standoff struct {
	f     *fixture
	order string
	// before is what the worker's handler does first.
	before func(ctx context.Context, e *outbox.Execution) error
}

// run returns what the worker and the payment came to.
func (s standoff) run(id int64) (worker, payment error) {
	f := s.f
	e, err := f.ledger.Lock(f.ctx, []int64{id}, false)
	if err != nil {
		return nil, err
	}
	tx, err := f.pool.Begin(f.ctx)
	if err != nil {
		return e.Abort(f.ctx), err
	}
	if _, err := tx.Exec(f.ctx, "UPDATE orders SET status = 'PAID' WHERE id = $1", s.order); err != nil {
		return e.Abort(f.ctx), err
	}
	paid := start(func() (string, error) {
		// The last word on the task: it waits for whoever holds it.
		answer, err := outbox.DefaultSchema.Schedule(f.ctx, tx, closeOrder, s.order, time.Now().Add(time.Hour), nil)
		if err != nil {
			return "", err
		}
		return string(answer), tx.Commit(f.ctx)
	})
	worker = s.close(e)
	if abortErr := e.Abort(f.ctx); worker == nil {
		worker = abortErr
	}
	return worker, (<-paid).err
}

// close is the worker's handler, which waits for the payment.
func (s standoff) close(e *outbox.Execution) error {
	ctx, cancel := e.Bound(s.f.ctx)
	defer cancel()
	if err := s.before(ctx, e); err != nil {
		return err
	}
	_, err := e.Conn().Exec(ctx, "UPDATE orders SET status = 'CLOSED' WHERE id = $1 AND status = 'UNPAID'", s.order)
	return err
}

// In a conflict the worker gives way, and the application is never the
// deadlock's victim, even where the worker has spent most of its time before.
func TestTheApplicationIsNeverTheDeadlocksVictim(t *testing.T) {
	t.Parallel()
	f := setUp(t, "deadlock_timeout = '1s'")
	f.exec("CREATE TABLE orders (id text, status text)")
	const standoffs = 6
	nap := func(ctx context.Context, e *outbox.Execution) error {
		_, err := e.Conn().Exec(ctx, "SELECT pg_sleep(0.4)")
		return err
	}
	befores := map[string]func(context.Context, *outbox.Execution) error{
		"at once":                 func(context.Context, *outbox.Execution) error { return nil },
		"after another statement": nap,
		"within its new limit": func(ctx context.Context, e *outbox.Execution) error {
			return errors.Join(nap(ctx, e), e.Limit(ctx))
		},
	}
	for name, before := range befores {
		t.Run(name, func(t *testing.T) {
			var group errgroup.Group
			for n := range standoffs {
				order := fmt.Sprintf("%s %d", name, n)
				f.exec("INSERT INTO orders VALUES ($1, 'UNPAID')", order)
				id := f.put(order, -time.Minute, bide.Sent)
				group.Go(func() error {
					worker, payment := standoff{f, order, before}.run(id)
					if payment != nil {
						return fmt.Errorf("payment of order %s: %w", order, payment)
					}
					if worker == nil {
						return fmt.Errorf("the worker closed order %s in spite of the payment", order)
					}
					return nil
				})
			}
			require.NoError(t, group.Wait())
		})
	}
	require.Equal(t, standoffs*len(befores), value[int](f, "SELECT count(*) FROM orders WHERE status = 'PAID'"))
	require.Equal(t, standoffs*len(befores), value[int](f, "SELECT count(*) FROM bide.delay_task WHERE fire_at > now()"))
	require.Zero(t, value[int](f, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()"))
}

// A handler that has used up its time has its statement cancelled, and keeps
// the session for an orderly end.
func TestABoundExecutionEndsInGoodOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t, "deadlock_timeout = '2s'")
	id := f.put("1", -time.Minute, bide.Waiting)
	e := f.lockDue(due())
	require.Equal(t, []int64{id}, taskIDs(e.Tasks))
	bound, cancel := e.Bound(f.ctx)
	defer cancel()
	begun := time.Now()
	for bound.Err() == nil {
		_, err := e.Conn().Exec(bound, "SELECT pg_sleep(0.5)")
		require.True(t, err == nil || bound.Err() != nil, "%v", err)
	}
	require.ErrorIs(t, context.Cause(bound), outbox.ErrTooLong)
	require.Less(t, time.Since(begun), 5*time.Second)
	require.False(t, e.Conn().Conn().IsClosed())
	require.NoError(t, e.Abort(f.ctx))
	require.Equal(t, []int64{id}, f.found(due()), "and no suspicion falls on its tasks")
}

func TestAnExecutionHasOnlySoMuchTime(t *testing.T) {
	t.Parallel()
	f := setUp(t, "deadlock_timeout = '1s'")
	e := f.lock(f.put("1", -time.Minute, bide.Sent))
	_, err := e.Conn().Exec(f.ctx, "SELECT pg_sleep(30)")
	var stopped *pgconn.PgError
	require.ErrorAs(t, err, &stopped)
	require.Equal(t, "57014", stopped.Code, "statement_timeout")
	require.ErrorIs(t, e.Limit(f.ctx), outbox.ErrTooLong)
	_ = e.Abort(f.ctx) // a slow machine may have lost the session by now
}
