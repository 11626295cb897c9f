package outbox_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

// The type of most tests' tasks.
const closeOrder = "close_order"

// A test that waits longer than this hangs.
const hung = 60 * time.Second

// fixture is a ledger of a test's own.
type fixture struct {
	testing.TB
	ctx    context.Context
	url    string
	pool   *pgxpool.Pool
	ledger *outbox.Ledger
}

// setUp makes a ledger in a database with these settings. An execution may last
// long there, for the sake of slow machines, unless deadlock_timeout is set.
func setUp(t testing.TB, settings ...string) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	t.Cleanup(cancel)
	f := &fixture{TB: t, ctx: ctx, url: pgtest.Copy(t, template(t))}
	name := pgtest.Database(t, f.url)
	alter := strings.Builder{}
	for _, setting := range append([]string{
		"deadlock_timeout = '20s'", "synchronous_commit = off",
		"search_path = public", // the role may be named like the schema
	}, settings...) {
		fmt.Fprintf(&alter, "ALTER DATABASE %s SET %s;", name, setting)
	}
	admin, err := pgx.Connect(ctx, f.url)
	require.NoError(t, err)
	_, err = admin.Exec(ctx, alter.String())
	require.NoError(t, err)
	require.NoError(t, admin.Close(ctx))
	f.pool = pgtest.Pool(t, f.url, 20)
	f.ledger = pgtest.Open(t, f.pool)
	return f
}

// migrated is the database with a ledger that the tests' own are copies of:
// migrating takes longer than all the rest of setting up.
var migrated struct {
	sync.Mutex
	name string
}

func template(t testing.TB) string {
	t.Helper()
	migrated.Lock()
	defer migrated.Unlock()
	if migrated.name != "" {
		return migrated.name
	}
	name := fmt.Sprintf("bide_template_%d", os.Getpid())
	onServer(t, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
	migrated.name = name
	pgtest.Migrate(t, pgtest.WithDatabase(t, pgtest.ServerURL(t), name), outbox.DefaultSchema)
	return name
}

// onServer runs statements that no transaction may hold.
func onServer(t testing.TB, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.ServerURL(t))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for _, sql := range statements {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
}

// exec runs a statement and returns how many rows it touched.
func (f *fixture) exec(sql string, args ...any) int {
	f.Helper()
	tag, err := f.pool.Exec(f.ctx, sql, args...)
	require.NoError(f, err)
	return int(tag.RowsAffected())
}

// value reads one value.
func value[T any](f *fixture, sql string, args ...any) T {
	f.Helper()
	rows, err := f.pool.Query(f.ctx, sql, args...)
	require.NoError(f, err)
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(f, err)
	return got
}

// values reads one column.
func values[T any](f *fixture, sql string, args ...any) []T {
	f.Helper()
	rows, err := f.pool.Query(f.ctx, sql, args...)
	require.NoError(f, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(f, err)
	return got
}

// now is the database's clock.
func (f *fixture) now() time.Time {
	f.Helper()
	return value[time.Time](f, "SELECT clock_timestamp()")
}

// begin opens an application's transaction, rolled back at the end unless it
// has ended by then.
func (f *fixture) begin() pgx.Tx {
	f.Helper()
	tx, err := f.pool.Begin(f.ctx)
	require.NoError(f, err)
	f.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(f.ctx)) })
	return tx
}

// put inserts a task in the state, due after the time, and returns its id.
func (f *fixture) put(bizID string, in time.Duration, state bide.State) int64 {
	f.Helper()
	return value[int64](f, `INSERT INTO bide.delay_task (biz_type, biz_id, fire_at, status, claim_token, lease_until)
		SELECT $1, $2, now() + $3::interval, s, CASE s WHEN 'RUNNING' THEN gen_random_uuid() END,
		       CASE s WHEN 'RUNNING' THEN now() + interval '1 minute' END
		  FROM (VALUES ($4::text::bide.task_state)) AS state (s)
		RETURNING id`, closeOrder, bizID, in, string(state))
}

// putMany inserts n WAITING tasks, biz_id 1 to n, due after the time.
func (f *fixture) putMany(n int, in time.Duration) {
	f.Helper()
	f.exec(`INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
		SELECT $1, n::text, now() + $2::interval FROM generate_series(1, $3) AS n`, closeOrder, in, n)
}

// schedule is the application's call in a transaction of its own.
func (f *fixture) schedule(bizID string, at time.Time, payload any) (answer outbox.Answer, err error) {
	err = pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) error {
		answer, err = outbox.DefaultSchema.Schedule(f.ctx, tx, closeOrder, bizID, at, payload)
		return err
	})
	return answer, err
}

// cancel is the application's call in a transaction of its own.
func (f *fixture) cancel(bizID string) (change outbox.Answer) {
	f.Helper()
	require.NoError(f, pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) (err error) {
		change, err = outbox.DefaultSchema.Cancel(f.ctx, tx, closeOrder, bizID)
		return err
	}))
	return change
}

// reschedule is the application's call in a transaction of its own.
func (f *fixture) reschedule(bizID string, at time.Time) (change outbox.Answer) {
	f.Helper()
	require.NoError(f, pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) (err error) {
		change, err = outbox.DefaultSchema.Reschedule(f.ctx, tx, closeOrder, bizID, at)
		return err
	}))
	return change
}

// lock begins an execution of the tasks as a worker does. End it.
func (f *fixture) lock(ids ...int64) *outbox.Execution {
	f.Helper()
	e, err := f.ledger.Lock(f.ctx, ids, false)
	require.NoError(f, err)
	return e
}

// execute locks the tasks and finishes all of them.
func (f *fixture) execute(result bide.Result, ids ...int64) {
	f.Helper()
	e := f.lock(ids...)
	require.NoError(f, e.Finish(f.ctx, bide.ViaBroker, verdicts(e, result)))
}

func verdicts(e *outbox.Execution, result bide.Result) []outbox.Verdict {
	var all []outbox.Verdict
	for _, t := range e.Tasks {
		all = append(all, outbox.Verdict{TaskID: t.ID, Result: result})
	}
	return all
}

func taskIDs(tasks []bide.Task) []int64 {
	ids := []int64{}
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

// live is how many live tasks there are with the order.
func (f *fixture) live(bizID string) int {
	f.Helper()
	return value[int](f, "SELECT count(*) FROM bide.delay_task WHERE biz_id = $1", bizID)
}

// state is the state or the result of the order's one task.
func (f *fixture) state(bizID string) string {
	f.Helper()
	return value[string](f, "SELECT state FROM bide.task WHERE biz_id = $1", bizID)
}

// outcome is what a call in the background came to.
type outcome[T any] struct {
	got T
	err error
}

// start makes a call in the background.
func start[T any](call func() (T, error)) <-chan outcome[T] {
	done := make(chan outcome[T], 1)
	go func() {
		got, err := call()
		done <- outcome[T]{got, err}
	}()
	return done
}

// awaitBlocked waits until so many sessions wait for a lock.
func (f *fixture) awaitBlocked(n int) {
	f.Helper()
	require.Eventually(f, func() bool {
		return value[int](f, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`) == n
	}, hung, 5*time.Millisecond, "%d sessions should wait for a lock", n)
}
