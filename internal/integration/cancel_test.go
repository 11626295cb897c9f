package integration

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Cancel waits 100 ms at most; the rest is for a busy machine. Whoever waits
// for a second may become a deadlock's victim.
const cancelWithin = time.Second

// The payment holds the order's row that the worker wants, and asks for the
// task's row that the worker may hold.
func TestCancelInsideATransactionThatHoldsTheOrder(t *testing.T) {
	t.Parallel()
	s := newSystem(t, usual)
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	orders := s.place(t, 400, 2*time.Second, 5*time.Millisecond)
	chance := random(t)
	var mu sync.Mutex
	answers := map[string]int{}
	var longest time.Duration
	var payments errgroup.Group
	for _, o := range orders {
		at := o.deadline.Add(time.Duration(chance.Int64N(int64(60*time.Millisecond))) - 50*time.Millisecond)
		payments.Go(func() error {
			await(t.Context(), time.Until(at))
			err := s.tx(t.Context(), func(tx pgx.Tx) error {
				if err := pay(t.Context(), tx, o); err != nil {
					return err
				}
				await(t.Context(), 20*time.Millisecond) // long enough for the worker to come
				begun := time.Now()
				answer, err := cancel(t.Context(), tx, o)
				mu.Lock()
				defer mu.Unlock()
				answers[answer]++
				longest = max(longest, time.Since(begun))
				return err
			})
			if errors.Is(err, errTooLate) {
				return nil
			}
			return err
		})
	}
	require.NoError(t, payments.Wait(), "no deadlock")
	t.Logf("answers %v, the longest took %s", answers, longest)
	require.Less(t, longest, cancelWithin)
	require.NotZero(t, answers["cancelled"])
	s.awaitDone(t, 20*time.Second)
	v := s.requireKept(t, promised)
	require.Equal(t, v.Paid, answers["cancelled"]+answers["requested"], "an order that was paid cannot have been closed: %v", answers)
}

// A request that meets an execution is honoured when the execution ends without
// having acted.
func TestCancelThatMeetsAnExecutionIsHonouredWhenItRollsBack(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.startRelay(t, relaySpec{})
	begun, end := make(chan struct{}), make(chan struct{})
	s.startWorker(t, workerSpec{handler: stuck(begun, end, errRolledBack)})
	orders := s.place(t, 1, 500*time.Millisecond, 0)
	<-begun
	var answer string
	require.NoError(t, s.tx(t.Context(), func(tx pgx.Tx) (err error) {
		answer, err = cancel(t.Context(), tx, orders[0])
		return err
	}))
	require.Equal(t, "requested", answer)
	close(end)
	s.awaitDone(t, 10*time.Second)
	require.Equal(t, 1, s.count(t, "SELECT count(*) FROM bide.delay_task_history WHERE result = 'CANCELLED'"))
	require.Zero(t, s.judge(t).Closed)
}
