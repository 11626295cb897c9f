package outbox_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

const day = 24 * time.Hour

// partition is the name of history's partition for the day in so many days.
func (f *fixture) partition(in int) string {
	f.Helper()
	return value[string](f, "SELECT 'delay_task_history_' || to_char((now() AT TIME ZONE 'UTC')::date + $1::int, 'YYYYMMDD')", in)
}

func (f *fixture) partitions() []string {
	f.Helper()
	return values[string](f, f.statement("partitions"))
}

// forget takes a day's partition away.
func (f *fixture) forget(in int) {
	f.Helper()
	f.exec("DROP TABLE bide." + f.partition(in))
}

// backdate makes the partition for a past day, with a task that ended then.
func (f *fixture) backdate(daysAgo int) {
	f.Helper()
	f.exec("SELECT bide.history_add_day((now() AT TIME ZONE 'UTC')::date - $1::int)", daysAgo)
	f.exec(`INSERT INTO bide.delay_task_history (id, fire_at, finished_at, created_at, result, via, sends, attempts, reclaims, biz_type, biz_id)
		SELECT $1, t, t, t, 'DONE', 'sweep', 0, 0, 0, 'a', $1::text FROM (VALUES (now() - $1::int * interval '1 day')) AS v (t)`, daysAgo)
}

func (f *fixture) endedIn() string {
	f.Helper()
	return value[string](f, "SELECT tableoid::regclass::text FROM bide.delay_task_history")
}

func TestDaysExistAheadOfTime(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	week := []string{}
	for in := range 8 {
		week = append(week, f.partition(in))
	}
	want := append(week, "delay_task_history_default")
	require.Equal(t, want, f.partitions(), "from the first migration on")
	f.forget(0)
	f.forget(3)
	f.forget(7)
	require.NoError(t, f.ledger.KeepHouse(f.ctx, 30*day))
	require.Equal(t, want, f.partitions())
	require.NoError(t, f.ledger.KeepHouse(f.ctx, 30*day))
	require.Equal(t, want, f.partitions())

	f.execute(bide.Done, f.put("1", -time.Minute, bide.Sent))
	require.Equal(t, "bide."+f.partition(0), f.endedIn())
}

// Nobody kept house for days; what ended meanwhile is in the default
// partition, and would keep the day's own from being attached.
func TestStrayRowsMoveToTheirDay(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.forget(0)
	f.execute(bide.Done, f.put("1", -time.Minute, bide.Sent))
	require.Equal(t, "bide.delay_task_history_default", f.endedIn())
	require.NoError(t, f.ledger.KeepHouse(f.ctx, 30*day))
	require.Equal(t, "bide."+f.partition(0), f.endedIn())
	require.Equal(t, "DONE", f.state("1"))
}

// Nobody kept house for longer than days exist in advance.
func TestStrayRowsOfPastDaysMoveOrGo(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, ago := range []int{3, 29, 40} {
		f.exec(`INSERT INTO bide.delay_task_history (id, fire_at, finished_at, created_at, result, via, sends, attempts, reclaims, biz_type, biz_id)
			SELECT $1, t, t, t, 'DONE', 'sweep', 0, 0, 0, 'a', $1::text FROM (VALUES (now() - $1::int * interval '1 day')) AS v (t)`, ago)
	}
	require.NoError(t, f.ledger.KeepHouse(f.ctx, 30*day))
	require.Equal(t, []string{"bide." + f.partition(-3), "bide." + f.partition(-29)},
		values[string](f, "SELECT tableoid::regclass::text FROM bide.delay_task_history ORDER BY id"), "what is older than the retention is gone")
}

func TestRetentionDropsWholeDays(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, ago := range []int{29, 30, 31, 40} {
		f.backdate(ago)
	}
	require.NoError(t, f.ledger.KeepHouse(f.ctx, 30*day))
	require.Equal(t, []int64{29, 30}, values[int64](f, "SELECT id FROM bide.task ORDER BY id"), "no task goes before 30 days are over")
	require.NotContains(t, f.partitions(), f.partition(-31))
	require.NotContains(t, f.partitions(), f.partition(-40))
	require.Contains(t, f.partitions(), f.partition(-30))
	require.Contains(t, f.partitions(), "delay_task_history_default")
}

// A day's partition knows history's indexes and comments.
func TestAMadeDayIsLikeTheOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	require.Len(t, slices.Compact(values[string](f, `SELECT string_agg(regexp_replace(indexdef, '^.* USING', ''), '; ' ORDER BY regexp_replace(indexdef, '^.* USING', ''))
		FROM pg_indexes WHERE schemaname = 'bide' AND tablename LIKE 'delay_task_history_%' GROUP BY tablename`)), 1)
}

// A dump reads history for long, or an application leaves its transaction open
// after a cancel. Housekeeping gives up after a moment, meanwhile nobody waits
// for it, and it succeeds when the other is gone.
func TestHousekeepingGivesWay(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"to a long reader":     "SELECT count(*) FROM bide.delay_task_history",
		"to an unended cancel": "SELECT bide.cancel('close_order', 'open')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			f.forget(5)
			f.backdate(40)
			f.put("open", time.Hour, bide.Waiting)
			other := f.begin()
			_, err := other.Exec(f.ctx, sql)
			require.NoError(t, err)
			f.cancelWhileKeepingHouse(30)
			require.NoError(t, other.Rollback(f.ctx))
			require.NoError(t, f.ledger.KeepHouse(f.ctx, 30*day))
			require.Contains(t, f.partitions(), f.partition(5))
			require.NotContains(t, f.partitions(), f.partition(-40))
		})
	}
}

// cancelWhileKeepingHouse cancels beside a housekeeping that cannot succeed.
func (f *fixture) cancelWhileKeepingHouse(cancels int) {
	f.Helper()
	f.putMany(cancels, time.Hour)
	stop := make(chan struct{})
	kept := start(func() (rounds int, err error) {
		for {
			select {
			case <-stop:
				return rounds, nil
			default:
			}
			if f.ledger.KeepHouse(f.ctx, 30*day) == nil {
				return rounds, errors.New("nothing got in its way")
			}
			rounds++
		}
	})
	var took []time.Duration
	for i := range cancels {
		begun := time.Now()
		require.Equal(f, outbox.Cancelled, f.cancel(strconv.Itoa(i+1)))
		require.Equal(f, outbox.NotFound, f.cancel("unknown"), "it reads all of history")
		took = append(took, time.Since(begun))
	}
	close(stop)
	got := <-kept
	require.NoError(f, got.err)
	slices.Sort(took)
	f.Logf("%d rounds of housekeeping; two cancels took %s in the middle, %s at most", got.got, took[cancels/2], took[cancels-1])
	require.NotZero(f, got.got)
	require.Less(f, took[cancels/2], 200*time.Millisecond)
}

func TestSeveralKeepHouseAtOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, in := range []int{1, 2, 4} {
		f.forget(in)
	}
	f.backdate(40)
	var keepers errgroup.Group
	for range 5 {
		keepers.Go(func() error { return f.ledger.KeepHouse(f.ctx, 30*day) })
	}
	require.NoError(t, keepers.Wait())
	require.NoError(t, f.ledger.KeepHouse(f.ctx, 30*day), "one of them did each change, or the next round does")
	require.Len(t, f.partitions(), 9)
}

// The day ends at midnight UTC wherever the server and the session live.
func TestDaysAreUTC(t *testing.T) {
	t.Parallel()
	f := setUp(t, "timezone = 'Pacific/Kiritimati'") // UTC+14
	f.forget(3)
	require.NoError(t, f.ledger.KeepHouse(f.ctx, 30*day))
	require.Len(t, f.partitions(), 9)
	for _, moment := range []string{"0", "1 day - 1 microsecond"} {
		require.Equal(t, "bide."+f.partition(3), value[string](f, `INSERT INTO bide.delay_task_history
			       (id, fire_at, finished_at, created_at, result, via, sends, attempts, reclaims, biz_type, biz_id)
			SELECT 1, t, t, t, 'DONE', 'sweep', 0, 0, 0, 'a', '1'
			  FROM (VALUES ((date_trunc('day', now() AT TIME ZONE 'UTC') + interval '3 days' + $1::text::interval) AT TIME ZONE 'UTC')) AS v (t)
			RETURNING tableoid::regclass::text`, moment))
	}
}
