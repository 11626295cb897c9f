package outbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

func TestFindGoesByEveryPartOfTheFilter(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	overdue := f.put("overdue", -time.Hour, bide.Waiting)
	sent := f.put("sent", time.Hour, bide.Sent)
	failed := f.put("failed", -time.Minute, bide.Failed)
	done := f.put("done", -2*time.Minute, bide.Sent)
	f.execute(bide.Done, done)
	other := value[int64](f, "INSERT INTO bide.delay_task (biz_type, biz_id, fire_at, payload) VALUES ('other', 'sent', now() + interval '2 hours', '{}') RETURNING id")
	for name, tt := range map[string]struct {
		filter outbox.Filter
		want   []int64
	}{
		"all, the latest first": {outbox.Filter{}, []int64{other, sent, done, failed, overdue}},
		"limit":                 {outbox.Filter{Limit: 2}, []int64{other, sent}},
		"id":                    {outbox.Filter{ID: done}, []int64{done}},
		"type":                  {outbox.Filter{BizType: "other"}, []int64{other}},
		"order":                 {outbox.Filter{BizID: "sent"}, []int64{other, sent}},
		"order and type":        {outbox.Filter{BizID: "sent", BizType: closeOrder}, []int64{sent}},
		"live state":            {outbox.Filter{State: "FAILED"}, []int64{failed}},
		"result":                {outbox.Filter{State: "DONE"}, []int64{done}},
		"overdue":               {outbox.Filter{Overdue: new(time.Duration(0))}, []int64{overdue}},
		"overdue for longer":    {outbox.Filter{Overdue: new(2 * time.Hour)}, []int64{}},
		"nothing":               {outbox.Filter{ID: 1 << 40}, []int64{}},
	} {
		if tt.filter.Limit == 0 {
			tt.filter.Limit = 100
		}
		records, err := f.ledger.Find(f.ctx, tt.filter)
		require.NoError(t, err)
		got := []int64{}
		for _, r := range records {
			got = append(got, r.ID)
		}
		require.Equal(t, tt.want, got, name)
	}
	records, err := f.ledger.Find(f.ctx, outbox.Filter{ID: done, Limit: 1})
	require.NoError(t, err)
	r := records[0]
	require.Equal(t, []string{closeOrder, "done", "DONE", "broker"}, []string{r.BizType, r.BizID, r.State, r.Via})
	require.Nil(t, r.RunAt)
	require.NotNil(t, r.FinishedAt)
}

func TestRequeueIsForFailedTasks(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	waiting, first, second := f.put("waiting", -time.Hour, bide.Waiting), f.put("1", -time.Hour, bide.Failed), f.put("2", -time.Hour, bide.Failed)
	f.wear("1")
	n, err := f.ledger.Requeue(f.ctx, outbox.Filter{BizID: "1"})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, row{FireAt: f.row("1").FireAt, State: "WAITING", Sends: 3, LastError: new("worn")}, f.row("1"))
	require.ElementsMatch(t, []int64{waiting, first}, f.found(due()), "due at once")
	for _, none := range []outbox.Filter{{ID: waiting}, {BizType: "other"}, {ID: second, BizID: "1"}} {
		n, err := f.ledger.Requeue(f.ctx, none)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	n, err = f.ledger.Requeue(f.ctx, outbox.Filter{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.ElementsMatch(t, []int64{waiting, first, second}, f.found(due()))
}

// History tells an operator's cancel from the application's, also when it met
// an execution.
func TestAnOperatorsCancelIsRecordedAsSuch(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	cancel := func(bizID string, want outbox.Answer) {
		t.Helper()
		change, err := f.ledger.Cancel(f.ctx, closeOrder, bizID)
		require.NoError(t, err)
		require.Equal(t, want, change)
	}
	f.put("mine", time.Hour, bide.Waiting)
	require.Equal(t, outbox.Cancelled, f.cancel("mine"))
	f.put("his", time.Hour, bide.Waiting)
	cancel("his", outbox.Cancelled)
	mine, his := f.put("mine, held", -time.Minute, bide.Sent), f.put("his, held", -time.Minute, bide.Sent)
	e := f.lock(mine, his)
	require.Equal(t, outbox.Requested, f.cancel("mine, held"))
	cancel("his, held", outbox.Requested)
	require.NoError(t, e.Abort(f.ctx))
	require.Equal(t, 2, f.honour())
	require.Equal(t, []string{"his operator", "his, held operator", "mine application", "mine, held application"},
		values[string](f, "SELECT concat_ws(' ', biz_id, via) FROM bide.task ORDER BY biz_id"))
}

func TestMeasures(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	age, err := f.ledger.OldestOverdue(f.ctx)
	require.NoError(t, err)
	require.Zero(t, age, "of an empty ledger")
	f.put("1", time.Hour, bide.Waiting)
	age, err = f.ledger.OldestOverdue(f.ctx)
	require.NoError(t, err)
	require.Zero(t, age)
	f.put("2", -time.Minute, bide.Waiting)
	f.put("3", -time.Hour, bide.Sent)
	f.put("4", -48*time.Hour, bide.Failed)
	f.put("5", -24*time.Hour, bide.Running)
	age, err = f.ledger.OldestOverdue(f.ctx)
	require.NoError(t, err)
	require.InDelta(t, time.Hour, age, float64(time.Minute))
	counts, err := f.ledger.Counts(f.ctx)
	require.NoError(t, err)
	require.Equal(t, map[bide.State]int{bide.Waiting: 2, bide.Sent: 1, bide.Running: 1, bide.Failed: 1}, counts)
	require.NoError(t, f.ledger.Ping(f.ctx))
}

// A ledger may hold millions; nobody counts them every ten seconds.
func TestManyTasksAreEstimated(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const waiting, sent = 100_500, 101_000
	f.exec(`INSERT INTO bide.delay_task (biz_type, biz_id, fire_at, status)
		SELECT 'a', n::text, now() + interval '1 hour', CASE WHEN n <= $1 THEN 'WAITING' ELSE 'SENT' END::bide.task_state
		  FROM generate_series(1, $2) AS n`, waiting, waiting+sent)
	f.exec("VACUUM bide.delay_task")
	f.exec("DELETE FROM bide.delay_task WHERE biz_id = '1'")
	counts, err := f.ledger.Counts(f.ctx)
	require.NoError(t, err)
	require.InDelta(t, waiting, counts[bide.Waiting], 1000)
	require.InDelta(t, sent, counts[bide.Sent], 1000)
}

// Faults planted one by one; the audit names each, and nothing else.
func TestAuditFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const history = `INSERT INTO bide.delay_task_history (id, fire_at, finished_at, created_at, result, via, sends, attempts, reclaims, biz_type, biz_id)
		SELECT i, fire_at, now(), now(), result::bide.task_result, 'sweep', 0, 0, 0, 'a', 'x' FROM `
	f.put("fine", time.Hour, bide.Waiting)
	f.exec(history + "(VALUES (900, now() - interval '1 hour', 'DONE')) AS v (i, fire_at, result)")
	f.exec(history + "(VALUES (901, now() + interval '1 hour', 'CANCELLED')) AS v (i, fire_at, result)")
	broken := func() map[string][]int64 {
		audit, err := f.ledger.Audit(f.ctx)
		require.NoError(t, err)
		require.Len(t, audit, 6)
		found := map[string][]int64{}
		for _, a := range audit {
			require.Len(t, a.Examples, min(a.Broken, 10))
			if a.Broken > 0 {
				found[a.Promise+": "+a.Claim] = a.Examples
			}
		}
		return found
	}
	require.Empty(t, broken())
	for _, tt := range []struct {
		claim string
		plant func() []int64
	}{
		{"P1: no task is overdue by more than a minute", func() []int64 { return []int64{f.put("p", -2*time.Minute, bide.Sent)} }},
		{"P1: no task has failed for good", func() []int64 { return []int64{f.put("p", -2*time.Minute, bide.Failed)} }},
		{"P1: no lease ended more than a minute ago", func() []int64 {
			id := f.put("p", -time.Hour, bide.Running)
			f.exec("UPDATE bide.delay_task SET lease_until = now() - interval '2 minutes' WHERE id = $1", id)
			return []int64{id}
		}},
		{"P1: no task is in two places", func() []int64 {
			id := f.put("p", time.Hour, bide.Waiting)
			f.exec(history+"(VALUES ($1::bigint, now() - interval '1 hour', 'DONE')) AS v (i, fire_at, result)", id)
			return []int64{id}
		}},
		{"P2: no task was executed before its time", func() []int64 {
			f.exec(history + "(VALUES (910, now() + interval '1 second', 'DONE')) AS v (i, fire_at, result)")
			return []int64{910}
		}},
		{"P4: no task was finished twice", func() []int64 {
			f.exec(history + "(VALUES (920, now(), 'DONE'), (920, now(), 'SKIPPED')) AS v (i, fire_at, result)")
			return []int64{920}
		}},
	} {
		ids := tt.plant()
		require.Equal(t, map[string][]int64{tt.claim: ids}, broken())
		f.exec("DELETE FROM bide.delay_task WHERE biz_id = 'p'")
		f.exec("DELETE FROM bide.delay_task_history WHERE id NOT IN (900, 901)")
	}
}

func TestDiagnoseTellsWhatAnOperatorShouldKnow(t *testing.T) {
	t.Parallel()
	f := setUp(t, "default_transaction_isolation = 'repeatable read'")
	d, err := f.ledger.Diagnose(f.ctx)
	require.NoError(t, err)
	require.GreaterOrEqual(t, d.ServerVersion, 140000)
	require.Equal(t, "repeatable read", d.Isolation)
	require.EqualValues(t, 20_000, d.DeadlockTimeout)
	require.Equal(t, 7, d.DaysAhead)
	require.True(t, d.Owner)
	require.Zero(t, d.Stray+d.Failed+d.StaleBatches)

	f.forget(0)
	f.forget(7)
	f.execute(bide.Done, f.put("1", -time.Minute, bide.Sent))
	f.put("2", time.Hour, bide.Failed)
	f.age(f.claimed("3"))
	tx := f.begin()
	_, err = tx.Exec(f.ctx, "SELECT pg_sleep(0.1)")
	require.NoError(t, err)
	d, err = f.ledger.Diagnose(f.ctx)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 1, 6}, []int{d.Stray, d.Failed, d.StaleBatches, d.DaysAhead})
	require.Greater(t, d.OldestTransaction, 100*time.Millisecond)
}
