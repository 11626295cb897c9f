package outbox_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

func (f *fixture) claim(windows ...bide.Window) bide.Batch {
	f.Helper()
	batch, err := f.ledger.Claim(f.ctx, windows)
	require.NoError(f, err)
	return batch
}

func claimedIDs(batch bide.Batch) []int64 {
	ids := []int64{}
	for _, c := range batch.Tasks {
		ids = append(ids, c.TaskID)
	}
	slices.Sort(ids)
	return ids
}

func TestClaimTakesWhatLiesInAWindow(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	inTen, inTwenty := f.put("in 10 min", 10*time.Minute, bide.Waiting), f.put("in 20 min", 20*time.Minute, bide.Waiting)
	f.put("in 5 min", 5*time.Minute, bide.Waiting)
	f.put("overdue", -time.Second, bide.Waiting)
	for i, state := range []bide.State{bide.Sent, bide.Running, bide.Failed} {
		f.put("not waiting "+strconv.Itoa(i), 10*time.Minute, state)
	}
	batch := f.claim(
		bide.Window{Level: bide.LevelTimer, From: 19 * time.Minute, To: 21 * time.Minute, Limit: 10},
		bide.Window{Level: 7, From: 9 * time.Minute, To: 11 * time.Minute, Limit: 10},
	)
	require.NotZero(t, batch.ID)
	require.WithinDuration(t, f.now(), batch.Now, time.Minute)
	slices.SortFunc(batch.Tasks, func(a, b bide.Claimed) int { return int(a.TaskID - b.TaskID) })
	require.Len(t, batch.Tasks, 2)
	require.Equal(t, []int{7, bide.LevelTimer}, []int{batch.Tasks[0].Level, batch.Tasks[1].Level})
	require.Equal(t, []int64{inTen, inTwenty}, claimedIDs(batch))
	for _, c := range batch.Tasks {
		runAt := value[time.Time](f, "SELECT run_at FROM bide.delay_task WHERE id = $1", c.TaskID)
		require.True(t, runAt.Equal(c.RunAt), "to the microsecond")
		require.Equal(t, "SENT 1", value[string](f, "SELECT status || ' ' || sends FROM bide.delay_task WHERE id = $1", c.TaskID))
	}
	require.Equal(t, 2, value[int](f, "SELECT cardinality(ids) FROM bide.relay_batch WHERE id = $1", batch.ID))
}

func TestClaimOfNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, windows := range [][]bide.Window{nil, {{Level: 1, From: 0, To: time.Hour, Limit: 10}}} {
		batch := f.claim(windows...)
		require.Zero(t, batch.ID)
		require.Empty(t, batch.Tasks)
		require.WithinDuration(t, f.now(), batch.Now, time.Minute, "the clock is told all the same")
	}
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.relay_batch"))
}

// Timers take the nearest first; a level, whose window is narrow, the farthest:
// the nearest would slip out of it before they are sent.
func TestClaimTakesInOrder(t *testing.T) {
	t.Parallel()
	for level, want := range map[int][2][]int64{
		bide.LevelTimer: {{56, 57, 58, 59, 60}, {51, 52, 53, 54, 55}},
		bide.LevelNone:  {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}},
		3:               {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}},
	} {
		f := setUp(t)
		f.exec(`INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
			SELECT 'a', n::text, now() + (100 - n) * interval '1 minute' FROM generate_series(1, 60) AS n`)
		window := bide.Window{Level: level, From: 0, To: 2 * time.Hour, Limit: 5}
		for _, ids := range want {
			require.Equal(t, ids, claimedIDs(f.claim(window)), "level %d", level)
		}
	}
}

// An edge belongs to one of two windows that touch, whatever the clock does.
func TestTouchingWindowsNeitherShareNorMiss(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const tasks = 500
	f.exec(`INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
		SELECT 'a', n::text, now() + interval '1 minute' + n * interval '1 microsecond' FROM generate_series(1, $1) AS n`, tasks)
	var windows []bide.Window
	for i := range 60 {
		from := time.Duration(i) * time.Second
		windows = append(windows, bide.Window{Level: i, From: from, To: from + time.Second, Limit: tasks})
	}
	windows = append(windows, bide.Window{Level: 60, From: time.Minute, To: time.Hour, Limit: tasks})
	batch := f.claim(windows...)
	require.Len(t, batch.Tasks, tasks)
	require.Len(t, slices.Compact(claimedIDs(batch)), tasks)
	require.Equal(t, tasks, value[int](f, "SELECT sum(sends)::int FROM bide.delay_task"), "each once")
}

func TestClaimLeavesHeldRowsAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	held, free := f.put("held", time.Minute, bide.Waiting), f.put("free", 2*time.Minute, bide.Waiting)
	application := f.begin()
	_, err := application.Exec(f.ctx, "SELECT FROM bide.delay_task WHERE id = $1 FOR UPDATE", held)
	require.NoError(t, err)
	window := bide.Window{Level: 1, From: 0, To: time.Hour, Limit: 1}
	require.Equal(t, []int64{free}, claimedIDs(f.claim(window)), "the held one does not use up the limit")
	require.NoError(t, application.Rollback(f.ctx))
	require.Equal(t, []int64{held}, claimedIDs(f.claim(window)))
}

func TestTwoRelaysShareTheTasks(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const tasks, relays = 4000, 2
	f.putMany(tasks, time.Hour)
	claims := make([][]bide.Batch, relays)
	var group errgroup.Group
	for r := range relays {
		group.Go(func() error {
			for {
				batch, err := f.ledger.Claim(f.ctx, []bide.Window{{Level: 1, From: 0, To: 2 * time.Hour, Limit: 100}})
				if err != nil || batch.ID == 0 {
					return err
				}
				claims[r] = append(claims[r], batch)
			}
		})
	}
	require.NoError(t, group.Wait())
	var all []int64
	for _, batch := range slices.Concat(claims...) {
		ids := claimedIDs(batch)
		require.Equal(t, ids, values[int64](f, "SELECT unnest(ids) FROM bide.relay_batch WHERE id = $1 ORDER BY 1", batch.ID), "the journal is exact")
		all = append(all, ids...)
	}
	t.Logf("batches: %d and %d", len(claims[0]), len(claims[1]))
	require.Len(t, all, tasks)
	slices.Sort(all)
	require.Len(t, slices.Compact(all), tasks, "no task twice")
	require.Equal(t, len(claims[0])+len(claims[1]), value[int](f, "SELECT count(*) FROM bide.relay_batch"))
}

// One row that has been around for long does not spoil the batch.
func TestCountersGoBeyondSmallIntegers(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	old := f.put("old", time.Minute, bide.Waiting)
	f.exec("UPDATE bide.delay_task SET sends = 32767, attempts = 32767, reclaims = 32767")
	young := f.put("young", time.Minute, bide.Waiting)
	require.Equal(t, []int64{old, young}, claimedIDs(f.claim(bide.Window{Level: 1, From: 0, To: time.Hour, Limit: 10})))
	require.Equal(t, 32768, value[int](f, "SELECT sends FROM bide.delay_task WHERE id = $1", old))
	f.exec("UPDATE bide.delay_task SET fire_at = now() - interval '1 second'")
	ended, err := f.ledger.Retry(f.ctx, []int64{old}, []string{"no"}, patientBackoff)
	require.NoError(t, err)
	require.Equal(t, 32768, ended[0].Attempts)
	f.exec("UPDATE bide.delay_task SET retry_at = NULL, reclaims = 32767, status = 'WAITING', updated_at = now() - interval '5 seconds'")
	_, ok, err := f.ledger.Reclaim(f.ctx, old, 1<<20)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, outbox.Cancelled, f.cancel("old"))
	require.Equal(t, "32768 32768 32768", value[string](f, "SELECT concat_ws(' ', sends, attempts, reclaims) FROM bide.delay_task_history"))
}
