package integration

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/handler"
)

// A checker that never fails proves nothing: each kind of fault is planted and
// has to be found, in a system that believes all is well.
func TestPlantedBugIsFoundByTheVerdict(t *testing.T) {
	t.Parallel()

	t.Run("an effect that is not made is lost", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t)
		s.startRelay(t, relaySpec{})
		s.startWorker(t, workerSpec{handlers: map[string]handler.Handler{"close_order": handler.InBatches(200, sayDone)}})
		s.place(t, 20, 500*time.Millisecond, 0)
		s.awaitDone(t, 10*time.Second)
		require.Equal(t, 20, s.judge(t).Lost)
		s.requireAudit(t, 0)
	})

	t.Run("a deadline that is later than the task's is missed early", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t)
		s.startRelay(t, relaySpec{})
		s.startWorker(t, workerSpec{})
		s.place(t, 20, 500*time.Millisecond, 0)
		s.exec(t, "UPDATE shop.orders SET deadline = deadline + interval '1 minute'")
		s.awaitDone(t, 10*time.Second)
		require.Equal(t, 20, s.judge(t).Early)
		s.requireAudit(t, 0)
	})

	t.Run("a handler that does not look again closes paid orders", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t)
		s.startRelay(t, relaySpec{})
		s.startWorker(t, workerSpec{handlers: s.handlers(t, `
handlers:
  close_order:
    lock: shop.orders(id)
    sql: UPDATE shop.orders SET status = 'CLOSED' WHERE id = ANY ($1) RETURNING id
`)})
		orders := s.place(t, 200, 1500*time.Millisecond, 5*time.Millisecond)
		require.NoError(t, s.race(t.Context(), orders, random(t)))
		s.awaitDone(t, 10*time.Second)
		require.NotZero(t, s.judge(t).Double)
		s.requireAudit(t, 0)
	})

	t.Run("an effect outside the task's transaction is made twice", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t)
		s.startRelay(t, relaySpec{})
		outside := func(ctx context.Context, _ pgx.Tx, tasks []bide.Task) ([]handler.Result, error) {
			if _, err := s.pool.Exec(ctx, "UPDATE shop.orders SET status = 'CLOSED' WHERE id = $1::bigint", tasks[0].BizID); err != nil {
				return nil, err
			}
			if tasks[0].Attempts == 0 {
				return []handler.Result{{Verdict: handler.Retry, Reason: "planted"}}, nil
			}
			return []handler.Result{{Verdict: handler.Done}}, nil
		}
		s.startWorker(t, workerSpec{handlers: map[string]handler.Handler{"close_order": handler.Func(outside)}})
		s.place(t, 5, 500*time.Millisecond, 0)
		s.awaitDone(t, 20*time.Second)
		require.Equal(t, 5, s.judge(t).Double)
	})
}

// sayDone says that it has done what it has not.
func sayDone(_ context.Context, _ pgx.Tx, tasks []bide.Task) ([]handler.Result, error) {
	results := make([]handler.Result, len(tasks))
	for i := range results {
		results[i].Verdict = handler.Done
	}
	return results, nil
}
