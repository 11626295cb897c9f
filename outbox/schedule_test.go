package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// row is what an application can see of a task, and what a schedule resets.
type row struct {
	FireAt                    time.Time
	State                     string
	Sends, Attempts, Reclaims int
	Leased                    bool
	LastError                 *string
	Payload                   *string
}

func (f *fixture) row(bizID string) row {
	f.Helper()
	rows, err := f.pool.Query(f.ctx, `SELECT fire_at, status::text, sends, attempts, reclaims,
		claim_token IS NOT NULL, last_error, payload::text FROM bide.delay_task WHERE biz_id = $1`, bizID)
	require.NoError(f, err)
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[row])
	require.NoError(f, err)
	return got
}

// wear makes a task look as if it had a past.
func (f *fixture) wear(bizID string) {
	f.Helper()
	require.Equal(f, 1, f.exec(`UPDATE bide.delay_task SET sends = 3, attempts = 2, reclaims = 1, last_error = 'worn',
		retry_at = now() + interval '1 day' WHERE biz_id = $1`, bizID))
}

func TestScheduleAnswersWhatBecameOfTheKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	now := f.now()
	past, future, later := now.Add(-time.Hour), now.Add(time.Hour), now.Add(2*time.Hour)
	executed := func(result bide.Result) func(id string) {
		return func(id string) {
			_, err := f.schedule(id, past, nil)
			require.NoError(t, err)
			f.execute(result, value[int64](f, "SELECT id FROM bide.delay_task WHERE biz_id = $1", id))
		}
	}
	live := func(state bide.State) func(id string) {
		return func(id string) {
			f.put(id, 0, state)
			f.exec("UPDATE bide.delay_task SET fire_at = $2 WHERE biz_id = $1", id, future)
		}
	}
	cancelled := func(id string) {
		_, err := f.schedule(id, past, nil)
		require.NoError(t, err)
		require.Equal(t, outbox.Cancelled, f.cancel(id))
	}
	for _, tt := range []struct {
		before string
		given  func(id string)
		at     time.Time
		want   outbox.Answer
		state  string // "" where no task lives afterwards
	}{
		{"nothing", func(string) {}, future, outbox.Created, "WAITING"},
		{"nothing, and the time has passed", func(string) {}, past, outbox.Created, "WAITING"},
		{"waiting at this time", live(bide.Waiting), future, outbox.Unchanged, "WAITING"},
		{"sent for this time", live(bide.Sent), future, outbox.Unchanged, "SENT"},
		{"running since this time", live(bide.Running), future, outbox.Unchanged, "RUNNING"},
		{"waiting for another time", live(bide.Waiting), later, outbox.Moved, "WAITING"},
		{"sent for another time", live(bide.Sent), later, outbox.Moved, "WAITING"},
		{"running since another time", live(bide.Running), later, outbox.Moved, "WAITING"},
		{"failed at another time", live(bide.Failed), later, outbox.Moved, "WAITING"},
		{"failed at this time", live(bide.Failed), future, outbox.Moved, "WAITING"},
		{"done at this time", executed(bide.Done), past, outbox.Finished, ""},
		{"skipped at this time", executed(bide.Skipped), past, outbox.Finished, ""},
		{"done at another time", executed(bide.Done), past.Add(time.Microsecond), outbox.Created, "WAITING"},
		{"done at another time, to come", executed(bide.Done), future, outbox.Created, "WAITING"},
		{"cancelled at this time", cancelled, past, outbox.Created, "WAITING"},
	} {
		t.Run(tt.before, func(t *testing.T) {
			tt.given(tt.before)
			answer, err := f.schedule(tt.before, tt.at, nil)
			require.NoError(t, err)
			require.Equal(t, tt.want, answer)
			if tt.state == "" {
				require.Zero(t, f.live(tt.before))
				return
			}
			got := f.row(tt.before)
			require.Equal(t, tt.state, got.State)
			require.WithinDuration(t, tt.at, got.FireAt, 0, "to the microsecond")
			require.Equal(t, tt.state == "RUNNING", got.Leased)
		})
	}
}

func TestAMovedTaskStartsOver(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.put("1", time.Hour, bide.Failed)
	f.wear("1")
	at := f.now().Add(-time.Minute)
	answer, err := f.schedule("1", at, nil)
	require.NoError(t, err)
	require.Equal(t, outbox.Moved, answer)
	require.Equal(t, row{FireAt: f.row("1").FireAt, State: "WAITING"}, f.row("1"))
	f.execute(bide.Done, id) // due at once, in spite of the pause before the next attempt
	require.Equal(t, "DONE", f.state("1"))
}

func TestScheduleKeepsTheLastPayload(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	at := f.now().Add(time.Hour)
	for _, tt := range []struct {
		payload any
		want    *string
		answer  outbox.Answer
	}{
		{map[string]int{"sku": 1}, new(`{"sku": 1}`), outbox.Created},
		{map[string]int{"sku": 2}, new(`{"sku": 2}`), outbox.Unchanged},
		{nil, nil, outbox.Unchanged},
		{[]string{"a"}, new(`["a"]`), outbox.Unchanged},
	} {
		answer, err := f.schedule("1", at, tt.payload)
		require.NoError(t, err)
		require.Equal(t, tt.answer, answer)
		require.Equal(t, tt.want, f.row("1").Payload)
	}
	version := "SELECT xmin::text || ctid::text FROM bide.delay_task"
	before := value[string](f, version)
	_, err := f.schedule("1", at, []string{"a"})
	require.NoError(t, err)
	locked := value[string](f, version)
	require.Equal(t, before, locked, "a repeated request writes no new row version")
}

func TestScheduleInCountsFromTheDatabasesClock(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	tx := f.begin()
	answer, err := outbox.DefaultSchema.ScheduleIn(f.ctx, tx, closeOrder, "1", 90*time.Second+time.Microsecond, nil)
	require.NoError(t, err)
	require.Equal(t, outbox.Created, answer)
	var delay time.Duration
	require.NoError(t, tx.QueryRow(f.ctx, "SELECT fire_at - now() FROM bide.task").Scan(&delay))
	require.Equal(t, 90*time.Second+time.Microsecond, delay)
	require.NoError(t, tx.QueryRow(f.ctx, "SELECT bide.schedule_in('a', '2', '1 day 2 hours')").Scan(&answer))
	require.NoError(t, tx.QueryRow(f.ctx, "SELECT fire_at - now() FROM bide.task WHERE biz_id = '2'").Scan(&delay))
	require.Equal(t, 26*time.Hour, delay)
}

// '00' is not '0', nor is 'a' 'A': a key is the text that was given.
func TestKeysAreText(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	keys := []string{"0", "00", "0 ", "a", "A", "ä", "a\u0308", "'; DROP TABLE bide.delay_task; --"}
	for _, key := range keys {
		answer, err := f.schedule(key, f.now().Add(-time.Second), nil)
		require.NoError(t, err)
		require.Equal(t, outbox.Created, answer)
	}
	got := []string{}
	e := f.lockDue(due())
	for _, task := range e.Tasks {
		got = append(got, task.BizID)
	}
	require.ElementsMatch(t, keys, got)
	require.NoError(t, e.Abort(f.ctx))
	require.Equal(t, outbox.Cancelled, f.cancel("0"))
	require.Equal(t, []int{0, 1}, []int{f.live("0"), f.live("00")})
}

func TestThreeColumnsAreATask(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	insert := "INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) VALUES ($1, '1', now() - interval '1 second')"
	f.exec(insert, closeOrder)
	require.Equal(t, "WAITING", f.state("1"))
	e, err := f.ledger.LockDue(f.ctx, bide.Due{Types: []string{closeOrder}, Limit: 1})
	require.NoError(t, err)
	require.Len(t, e.Tasks, 1, "a time in the past fires at once")
	require.NoError(t, e.Abort(f.ctx))

	_, err = f.pool.Exec(f.ctx, insert, closeOrder)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "delay_task_key", refused.ConstraintName, "one live task per key")
}

func TestOrderAndTaskCommitOrVanishTogether(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.exec("CREATE TABLE orders (id text PRIMARY KEY)")
	for _, end := range []struct {
		name string
		end  func(tx pgx.Tx) error
		want int
	}{
		{"rolled back", func(tx pgx.Tx) error { return tx.Rollback(f.ctx) }, 0},
		{"committed", func(tx pgx.Tx) error { return tx.Commit(f.ctx) }, 1},
	} {
		tx := f.begin()
		_, err := tx.Exec(f.ctx, "INSERT INTO orders VALUES ('1')")
		require.NoError(t, err)
		_, err = outbox.DefaultSchema.ScheduleIn(f.ctx, tx, closeOrder, "1", time.Hour, nil)
		require.NoError(t, err)
		require.Zero(t, f.live("1"), "invisible before the commit")
		require.NoError(t, end.end(tx))
		require.Equal(t, end.want, f.live("1"), end.name)
		require.Equal(t, end.want, value[int](f, "SELECT count(*) FROM orders"), end.name)
	}
	tx := f.begin()
	change, err := outbox.DefaultSchema.Cancel(f.ctx, tx, closeOrder, "1")
	require.NoError(t, err)
	require.Equal(t, outbox.Cancelled, change)
	require.NoError(t, tx.Rollback(f.ctx))
	require.Equal(t, "WAITING", f.state("1"), "a cancel is undone with its transaction")
}
