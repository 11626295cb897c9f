package integration

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide/internal/worker"
)

// errTooLate is what a customer is told whose order has been closed.
var errTooLate = errors.New("order closed")

// pay pays an order in the transaction, unless it is too late.
func pay(ctx context.Context, tx pgx.Tx, o order) error {
	tag, err := tx.Exec(ctx, "UPDATE shop.orders SET status = 'PAID' WHERE id = $1 AND status = 'UNPAID'", o.id)
	if err == nil && tag.RowsAffected() == 0 {
		return errTooLate
	}
	return err
}

// cancel withdraws an order's task in the transaction.
func cancel(ctx context.Context, tx pgx.Tx, o order) (answer string, err error) {
	err = tx.QueryRow(ctx, "SELECT bide.cancel('close_order', $1)", o.key()).Scan(&answer)
	return answer, err
}

// race pays every order within 50 ms of its deadline. Each second customer's
// payment withdraws the task as well, some payments take a while.
func (s *shop) race(ctx context.Context, orders []order, chance *rand.Rand) error {
	var payments errgroup.Group
	for i, o := range orders {
		at := o.deadline.Add(time.Duration(chance.Int64N(int64(100*time.Millisecond))) - 50*time.Millisecond)
		lasting := time.Duration(max(0, chance.Int64N(int64(40*time.Millisecond))-int64(20*time.Millisecond)))
		payments.Go(func() error {
			await(ctx, time.Until(at))
			err := s.tx(ctx, func(tx pgx.Tx) error {
				if err := pay(ctx, tx, o); err != nil || i%2 == 0 {
					return err
				}
				await(ctx, lasting)
				_, err := cancel(ctx, tx, o)
				return err
			})
			if errors.Is(err, errTooLate) {
				return nil
			}
			return err
		})
	}
	return payments.Wait()
}

// await lets time pass, as a customer does.
func await(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func TestPaymentRacingTheClose(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	orders := s.place(t, 1000, 3*time.Second, 4*time.Millisecond)
	require.NoError(t, s.race(t.Context(), orders, random(t)), "no payment fails, whatever the worker does")
	s.awaitDone(t, 20*time.Second)
	v := s.requireKept(t, promised)
	require.Greater(t, v.Paid, 20, "the race was run")
	require.Greater(t, v.Closed, 20, "the race was run")
}

func TestOrderHeldByAPaymentKeepsNoNeighbourWaiting(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"the payment succeeds": true, "the payment fails": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t)
			s.startRelay(t, relaySpec{})
			s.startWorker(t, workerSpec{})
			orders := s.place(t, 200, 2*time.Second, 0)
			held, neighbours := orders[77], len(orders)-1
			err := s.tx(t.Context(), func(tx pgx.Tx) error {
				if err := pay(t.Context(), tx, held); err != nil {
					return err
				}
				await(t.Context(), time.Until(held.deadline.Add(3*time.Second)))
				if !commit {
					return errTooLate
				}
				return nil
			})
			require.Equal(t, commit, err == nil, err)
			require.Equal(t, neighbours, s.closedWithin(t, time.Second))
			s.awaitDone(t, 10*time.Second)
			v := s.requireKept(t, promised)
			want := neighbours
			if !commit {
				want++
			}
			require.Equal(t, want, v.Closed)
		})
	}
}

// closedWithin counts the orders closed so soon after their deadline.
func (s *shop) closedWithin(t testing.TB, late time.Duration) int {
	t.Helper()
	return s.count(t, `SELECT count(*) FROM shop.order_event e JOIN shop.orders o ON o.id = e.order_id
		WHERE e.status = 'CLOSED' AND e.at <= o.deadline + $1::interval`, late)
}

// The worker holds both tasks and wants both orders; each payment holds one
// order and wants the other's task: a deadlock, of which PostgreSQL would make
// whoever has waited for deadlock_timeout the victim.
func TestTwoPaymentsThatWantEachOthersTaskAreNeverADeadlocksVictim(t *testing.T) {
	t.Parallel()
	const rounds = 4
	t.Run("handler locks first", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t, usual)
		s.startRelay(t, relaySpec{})
		s.startWorker(t, workerSpec{})
		for range rounds {
			seen := s.tally.of(worker.Busy)
			s.crossPayments(t, func(pgx.Tx) bool { return s.tally.of(worker.Busy) >= seen+2 })
		}
		s.requirePaid(t, 2*rounds)
	})
	t.Run("handler waits for the order's row", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t, usual)
		s.startRelay(t, relaySpec{})
		s.startWorker(t, workerSpec{handlers: s.handlers(t, `
handlers:
  close_order:
    sql: UPDATE shop.orders SET status = 'CLOSED' WHERE id = $1[1]::bigint AND status = 'UNPAID' RETURNING id::text
`)})
		for range rounds {
			s.crossPayments(t, func(tx pgx.Tx) bool {
				n, err := s.tryCount(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", tx.Conn().PgConn().PID())
				return err == nil && n > 0
			})
		}
		s.requirePaid(t, 2*rounds)
	})
}

// crossPayments pays two orders that are due. After the worker has met it, each
// payment touches the other's task.
func (s *system) crossPayments(t testing.TB, met func(tx pgx.Tx) bool) {
	t.Helper()
	orders := s.place(t, 2, 600*time.Millisecond, 0)
	var payments errgroup.Group
	for i, o := range orders {
		payments.Go(func() error {
			return s.tx(t.Context(), func(tx pgx.Tx) error {
				if err := pay(t.Context(), tx, o); err != nil {
					return err
				}
				for begun := time.Now(); !met(tx); await(t.Context(), 5*time.Millisecond) {
					if time.Since(begun) > 10*time.Second {
						return errors.New("the worker did not come")
					}
				}
				// Waits for whoever has the task's row, without a limit of its own.
				_, err := tx.Exec(t.Context(), "SELECT bide.schedule('close_order', $1, now())", orders[1-i].key())
				return err
			})
		})
	}
	require.NoError(t, payments.Wait())
}

func (s *system) requirePaid(t testing.TB, orders int) {
	t.Helper()
	s.awaitDone(t, 20*time.Second)
	require.Equal(t, orders, s.requireKept(t, 0).Paid)
}
