package execute_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/execute"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/outbox"
)

// A handler of several statements, each within the server's limit, meets a
// payment that holds the order and waits for its task. Together the statements
// would outlast deadlock_timeout, and the payment would be the victim.
func TestAHandlersStatementsTogetherGiveWayToThePayment(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pool := pgtest.New(t)
	ledger := pgtest.Open(t, pool)
	_, err := pool.Exec(ctx, `CREATE TABLE orders AS SELECT '1' AS id, 'UNPAID' AS status;
		INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) VALUES ('close', '1', now())`)
	require.NoError(t, err)
	payment, err := pool.Begin(ctx)
	require.NoError(t, err)
	_, err = payment.Exec(ctx, "UPDATE orders SET status = 'PAID'")
	require.NoError(t, err)

	paid := make(chan error, 1)
	closing := handler.Func(func(ctx context.Context, tx pgx.Tx, tasks []bide.Task) ([]handler.Result, error) {
		go func() {
			_, err := outbox.DefaultSchema.ScheduleIn(context.WithoutCancel(ctx), payment, "close", "1", time.Hour, nil)
			if err == nil {
				err = payment.Commit(context.WithoutCancel(ctx))
			}
			paid <- err
		}()
		if _, err := tx.Exec(ctx, "SELECT pg_sleep(0.5)"); err != nil {
			return nil, err
		}
		_, err := tx.Exec(ctx, "UPDATE orders SET status = 'CLOSED' WHERE status = 'UNPAID'")
		return make([]handler.Result, len(tasks)), err
	})
	x := execute.New(ledger, map[string]handler.Handler{"close": closing}, outbox.Backoff{})
	_, err = x.Sweep(ctx, bide.Due{Types: []string{"close"}, Limit: 10})
	require.ErrorIs(t, err, worker.ErrContended)
	require.ErrorIs(t, err, outbox.ErrTooLong)
	require.NoError(t, <-paid)

	var status string
	require.NoError(t, pool.QueryRow(ctx, "SELECT status FROM orders").Scan(&status))
	require.Equal(t, "PAID", status)
}
