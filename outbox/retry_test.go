package outbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// patientBackoff does not give up.
var patientBackoff = outbox.Backoff{MaxAttempts: 1 << 20, First: time.Second, Most: time.Minute}

func TestPausesDoubleUpToTheMost(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.put("1", -time.Hour, bide.Sent)
	for attempt, want := range []float64{1, 2, 4, 8, 16, 32, 60, 60} { // seconds
		ended, err := f.ledger.Retry(f.ctx, []int64{id}, []string{"no stock"}, patientBackoff)
		require.NoError(t, err)
		require.Equal(t, []bide.Ended{{ID: id, BizType: closeOrder, BizID: "1", State: bide.Waiting, Attempts: attempt + 1, LastError: "no stock"}}, ended)
		pause := value[time.Duration](f, "SELECT retry_at - updated_at FROM bide.delay_task")
		require.InDelta(t, want, pause.Seconds(), want/4+0.001, "give or take a quarter")
		require.True(t, value[bool](f, "SELECT run_at = retry_at FROM bide.delay_task"))
		f.exec("UPDATE bide.delay_task SET retry_at = now() - interval '1 ms'") // the pause is over
	}
}

func TestACrowdThatFailsTogetherComesBackSpread(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.putMany(100, -time.Hour)
	ids := values[int64](f, "SELECT id FROM bide.delay_task")
	ended, err := f.ledger.Retry(f.ctx, ids, make([]string, len(ids)), patientBackoff)
	require.NoError(t, err)
	require.Len(t, ended, len(ids))
	require.Greater(t, value[time.Duration](f, "SELECT max(retry_at) - min(retry_at) FROM bide.delay_task"), 300*time.Millisecond)
}

func TestATaskIsGivenUpAfterTheAttempts(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.put("1", -time.Hour, bide.Waiting)
	backoff := outbox.Backoff{MaxAttempts: 3, First: time.Microsecond, Most: time.Microsecond}
	for attempt := 1; attempt <= 3; attempt++ {
		require.Eventually(t, func() bool {
			return value[bool](f, "SELECT run_at <= now() FROM bide.delay_task")
		}, hung, time.Millisecond)
		ended, err := f.ledger.Retry(f.ctx, []int64{id}, []string{"no"}, backoff)
		require.NoError(t, err)
		require.Equal(t, attempt == 3, ended[0].State == bide.Failed)
	}
	require.Equal(t, "FAILED", f.state("1"))
	ended, err := f.ledger.Retry(f.ctx, []int64{id}, []string{"no"}, backoff)
	require.NoError(t, err)
	require.Empty(t, ended, "it has been given up")
	e := f.lock(id)
	require.Empty(t, e.Tasks)
	require.NoError(t, e.Abort(f.ctx))

	n, err := f.ledger.Requeue(f.ctx, outbox.Filter{BizType: closeOrder})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, "no", *f.row("1").LastError, "why it failed is kept")
	f.execute(bide.Done, id)
	require.Equal(t, "DONE", f.state("1"), "requeued, it is due at once")
}

// Somebody else has dealt with the task, or is dealing with it.
func TestRetryLeavesOthersTasksAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	early, held, failed, running := f.put("early", time.Hour, bide.Sent), f.put("held", -time.Hour, bide.Sent),
		f.put("failed", -time.Hour, bide.Failed), f.put("running", -time.Hour, bide.Running)
	e := f.lock(held)
	ended, err := f.ledger.Retry(f.ctx, []int64{early, held, failed, running, 1 << 40}, make([]string, 5), patientBackoff)
	require.NoError(t, err)
	require.Empty(t, ended)
	require.NoError(t, e.Abort(f.ctx))
	require.Zero(t, value[int](f, "SELECT sum(attempts)::int FROM bide.delay_task"))
}

// A retry never runs before the promise.
func TestARetryIsNeverEarly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.put("1", time.Hour, bide.Waiting)
	f.exec("UPDATE bide.delay_task SET retry_at = now() + interval '1 minute'")
	require.True(t, value[bool](f, "SELECT run_at = fire_at FROM bide.delay_task"))
	f.exec("UPDATE bide.delay_task SET retry_at = now() + interval '2 hours'")
	require.True(t, value[bool](f, "SELECT run_at = retry_at FROM bide.delay_task"))
	_, err := f.pool.Exec(f.ctx, "UPDATE bide.delay_task SET retry_at = 'infinity'")
	require.ErrorContains(t, err, "retry_at_is_between_the_years_1970_and_3000")
}
