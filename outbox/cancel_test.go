package outbox_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

func TestCancelSaysWhatItReached(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	executed := func(result bide.Result) func(string) {
		return func(id string) { f.execute(result, f.put(id, -time.Minute, bide.Sent)) }
	}
	put := func(state bide.State) func(string) {
		return func(id string) { f.put(id, time.Hour, state) }
	}
	for _, tt := range []struct {
		task  string
		given func(id string)
		want  outbox.Answer
		state string
	}{
		{"waiting", put(bide.Waiting), outbox.Cancelled, "CANCELLED"},
		{"sent", put(bide.Sent), outbox.Cancelled, "CANCELLED"},
		{"failed", put(bide.Failed), outbox.Cancelled, "CANCELLED"},
		{"running", put(bide.Running), outbox.Requested, "RUNNING"},
		{"done", executed(bide.Done), outbox.TooLate, "DONE"},
		{"skipped", executed(bide.Skipped), outbox.TooLate, "SKIPPED"},
		{"cancelled before", func(id string) { f.put(id, time.Hour, bide.Waiting); f.cancel(id) }, outbox.Cancelled, "CANCELLED"},
	} {
		t.Run(tt.task, func(t *testing.T) {
			tt.given(tt.task)
			require.Equal(t, tt.want, f.cancel(tt.task))
			require.Equal(t, tt.state, f.state(tt.task))
		})
	}
	require.Equal(t, outbox.NotFound, f.cancel("never heard of"))
}

func TestCancelTellsOfTheLastOfManyEndings(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.execute(bide.Done, f.put("1", -time.Minute, bide.Waiting))
	require.Equal(t, outbox.TooLate, f.cancel("1"))
	f.put("1", time.Hour, bide.Waiting)
	require.Equal(t, outbox.Cancelled, f.cancel("1"))
	require.Equal(t, outbox.Cancelled, f.cancel("1"), "cancelled last")
	require.Equal(t, []string{"CANCELLED", "DONE"}, values[string](f, "SELECT state FROM bide.task WHERE biz_id = '1' ORDER BY finished_at DESC"))
}

func TestACancelledTaskIsRecordedWhole(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := f.schedule("1", f.now().Add(time.Hour), map[string]int{"sku": 7})
	require.NoError(t, err)
	f.wear("1")
	const columns = "id, fire_at, created_at, sends, attempts, reclaims, biz_type, biz_id, payload, last_error"
	before := value[string](f, "SELECT ROW("+columns+")::text FROM bide.delay_task")
	require.Equal(t, outbox.Cancelled, f.cancel("1"))
	require.Equal(t, before, value[string](f, "SELECT ROW("+columns+")::text FROM bide.delay_task_history"))
	require.Equal(t, "application", value[string](f, "SELECT via FROM bide.task"))
}

// The promise is 100 ms; the shortest of a few tries is what the ledger takes
// rather than what a busy machine adds.
func TestCancelWaitsATenthOfASecondAtMost(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ids := []int64{f.put("1", -time.Minute, bide.Sent), f.put("2", -time.Minute, bide.Sent)}
	for name, call := range map[string]func(id string) outbox.Answer{
		"cancel":     f.cancel,
		"reschedule": func(id string) outbox.Answer { return f.reschedule(id, f.now().Add(time.Hour)) },
	} {
		var took []time.Duration
		for range 4 {
			e := f.lock(ids...)
			begun := time.Now()
			require.Equal(t, outbox.Requested, call("1"))
			took = append(took, time.Since(begun))
			require.NoError(t, e.Abort(f.ctx))
			f.exec("DELETE FROM bide.delay_task_request")
		}
		t.Log(name, took)
		require.GreaterOrEqual(t, slices.Min(took), 100*time.Millisecond, "a relay's claim would have ended in that time")
		require.Less(t, slices.Min(took), 150*time.Millisecond)
	}
}

func TestCancelOutlastsAShortHolder(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.put("1", time.Hour, bide.Waiting)
	tx := f.begin()
	_, err := tx.Exec(f.ctx, "UPDATE bide.delay_task SET status = 'SENT', sends = sends + 1")
	require.NoError(t, err)
	// Loaded machines may take longer to commit than the cancel waits.
	_, err = f.pool.Exec(f.ctx, "ALTER FUNCTION bide.cancel_as(text, text, bide.task_via) SET lock_timeout = '20s'")
	require.NoError(t, err)
	cancelled := start(func() (outbox.Answer, error) { return f.ledger.Cancel(f.ctx, closeOrder, "1") })
	f.awaitBlocked(1)
	require.NoError(t, tx.Commit(f.ctx))
	answer := <-cancelled
	require.NoError(t, answer.err)
	require.Equal(t, outbox.Cancelled, answer.got)
	require.Equal(t, 1, value[int](f, "SELECT sends FROM bide.task"), "what the claim wrote is in history")
}

func TestCancelMeetsAnExecution(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, tt := range []struct {
		name  string
		end   func(e *outbox.Execution) error
		state string
		after outbox.Answer
	}{
		{"rolled back: honoured", func(e *outbox.Execution) error { return e.Abort(f.ctx) }, "CANCELLED", outbox.Cancelled},
		{"left as it was: honoured", func(e *outbox.Execution) error { return e.Finish(f.ctx, bide.ViaBroker, nil) }, "CANCELLED", outbox.Cancelled},
		{"committed: too late", func(e *outbox.Execution) error { return e.Finish(f.ctx, bide.ViaBroker, verdicts(e, bide.Done)) }, "DONE", outbox.TooLate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := f.lock(f.put(tt.name, -time.Minute, bide.Sent))
			require.Len(t, e.Tasks, 1)
			require.Equal(t, outbox.Requested, f.cancel(tt.name))
			require.NoError(t, tt.end(e))
			n, err := f.ledger.HonourRequests(f.ctx)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, tt.state, f.state(tt.name))
			require.Equal(t, tt.after, f.cancel(tt.name))
		})
	}
}

func TestCancelAllAnswersForEachTaskOfTheOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	all := func(id string) (outcomes map[string]outbox.Answer) {
		require.NoError(t, pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) (err error) {
			outcomes, err = outbox.DefaultSchema.CancelAll(f.ctx, tx, id)
			return err
		}))
		return outcomes
	}
	f.exec(`INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
		SELECT t, o, now() FROM unnest('{close,remind,survey}'::text[]) AS t, unnest('{1,2}'::text[]) AS o`)
	e := f.lock(value[int64](f, "SELECT id FROM bide.delay_task WHERE biz_type = 'remind' AND biz_id = '1'"))
	require.Equal(t, map[string]outbox.Answer{
		"close": outbox.Cancelled, "remind": outbox.Requested, "survey": outbox.Cancelled,
	}, all("1"))
	require.NoError(t, e.Abort(f.ctx))
	require.Equal(t, 3, f.live("2"), "another order's tasks are left alone")
	require.Equal(t, map[string]outbox.Answer{"remind": outbox.Cancelled}, all("1"))
	require.Empty(t, all("1"), "it speaks of live tasks only")
}

// A payment holds the order's row and cancels, while a worker holds the task
// and waits for that row: nobody is a deadlock's victim, and the payment goes
// through first.
func TestCancelWhileHoldingTheOrdersRow(t *testing.T) {
	t.Parallel()
	f := setUp(t, "deadlock_timeout = '1s'")
	f.exec("CREATE TABLE orders AS SELECT '1'::text AS id, 'UNPAID' AS status")
	e := f.lock(f.put("1", -time.Minute, bide.Sent))
	payment := f.begin()
	_, err := payment.Exec(f.ctx, "UPDATE orders SET status = 'PAID'")
	require.NoError(t, err)
	handled := start(func() (int64, error) {
		tag, err := e.Conn().Exec(f.ctx, "UPDATE orders SET status = 'CLOSED' WHERE status = 'UNPAID'")
		return tag.RowsAffected(), err
	})
	change, err := outbox.DefaultSchema.Cancel(f.ctx, payment, closeOrder, "1")
	require.NoError(t, err)
	require.Equal(t, outbox.Requested, change)
	require.NoError(t, payment.Commit(f.ctx))
	if got := <-handled; got.err == nil {
		require.Zero(t, got.got, "the paid order is not closed")
	}
	require.NoError(t, e.Abort(context.WithoutCancel(f.ctx)))
	require.Equal(t, "PAID", value[string](f, "SELECT status FROM orders"))
}
