package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// forEachStrictIsolation runs the test on a database whose default isolation
// is stricter than the ledger's own.
func forEachStrictIsolation(t *testing.T, test func(t *testing.T, f *fixture)) {
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			test(t, setUp(t, "default_transaction_isolation = '"+level+"'"))
		})
	}
}

// The loops say which isolation they need, so none of them sees an error.
func TestTheLoopsShareTasksUnderAStrictDefault(t *testing.T) {
	t.Parallel()
	forEachStrictIsolation(t, func(t *testing.T, f *fixture) {
		const tasks = 400
		f.putMany(tasks, time.Hour)
		f.exec("UPDATE bide.delay_task SET fire_at = now() - interval '1 minute' WHERE id % 2 = 0")
		var loops errgroup.Group
		stop := make(chan struct{})
		for range 2 {
			loops.Go(func() error { return f.relay(stop) })
			loops.Go(func() error { return f.housekeep(stop) })
		}
		var sweeps errgroup.Group
		for range 2 {
			sweeps.Go(f.sweep)
		}
		require.NoError(t, sweeps.Wait())
		close(stop)
		require.NoError(t, loops.Wait())
		require.Equal(t, tasks/2, value[int](f, "SELECT count(*) FROM bide.delay_task_history"))
		require.Equal(t, tasks/2, value[int](f, "SELECT count(*) FROM bide.delay_task"))
	})
}

// sweep executes what is due until nothing is.
func (f *fixture) sweep() error {
	for {
		d := due()
		d.Limit = 4
		e, err := f.ledger.LockDue(f.ctx, d)
		if err != nil {
			return err
		}
		if len(e.Tasks) == 0 {
			return e.Abort(f.ctx)
		}
		if err := e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done)); err != nil {
			return err
		}
	}
}

// housekeep does what else the services do now and then, until stopped.
func (f *fixture) housekeep(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if _, err := f.ledger.HonourRequests(f.ctx); err != nil {
			return err
		}
		if _, err := f.ledger.Recover(f.ctx, time.Hour); err != nil {
			return err
		}
		_, err := f.pool.Exec(f.ctx, "INSERT INTO bide.sweep_batch (begun_at, ids) VALUES (now() - interval '2 hours', '{}')")
		if err != nil {
			return err
		}
		if err := f.ledger.KeepHouse(f.ctx, 24*time.Hour); err != nil {
			return err
		}
	}
}

// An application's snapshot may be older than what a relay or a worker did to
// the row. Cancel and reschedule say "requested" then, and are honoured.
func TestCancelAndRescheduleSurviveAnOldSnapshot(t *testing.T) {
	t.Parallel()
	forEachStrictIsolation(t, func(t *testing.T, f *fixture) {
		f.put("cancelled", time.Hour, bide.Waiting)
		f.put("moved", time.Hour, bide.Waiting)
		application := f.begin()
		_, err := application.Exec(f.ctx, "SELECT count(*) FROM bide.task") // takes the snapshot
		require.NoError(t, err)
		require.Len(t, f.claim(bide.Window{Level: 1, From: 0, To: 2 * time.Hour, Limit: 10}).Tasks, 2)

		change, err := outbox.DefaultSchema.Cancel(f.ctx, application, closeOrder, "cancelled")
		require.NoError(t, err)
		require.Equal(t, outbox.Requested, change)
		at := f.now().Add(48 * time.Hour)
		change, err = outbox.DefaultSchema.Reschedule(f.ctx, application, closeOrder, "moved", at)
		require.NoError(t, err)
		require.Equal(t, outbox.Requested, change)
		require.NoError(t, application.Commit(f.ctx))

		require.Equal(t, 2, f.honour())
		require.Equal(t, "CANCELLED", f.state("cancelled"))
		require.WithinDuration(t, at, f.row("moved").FireAt, 0)
	})
}

// Schedule cannot: it would lose the task or the time. The application repeats
// its transaction, as it must under these levels anyway.
func TestScheduleUnderAnOldSnapshotIsARetryableError(t *testing.T) {
	t.Parallel()
	forEachStrictIsolation(t, func(t *testing.T, f *fixture) {
		f.put("1", time.Hour, bide.Waiting)
		at := f.now().Add(2 * time.Hour)
		application := f.begin()
		_, err := application.Exec(f.ctx, "SELECT count(*) FROM bide.task")
		require.NoError(t, err)
		f.claim(bide.Window{Level: 1, From: 0, To: 2 * time.Hour, Limit: 10})
		_, err = outbox.DefaultSchema.Schedule(f.ctx, application, closeOrder, "1", at, nil)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "40001", refused.Code)
		require.NoError(t, application.Rollback(f.ctx))

		answer, err := f.schedule("1", at, nil)
		require.NoError(t, err)
		require.Equal(t, outbox.Moved, answer)
	})
}
