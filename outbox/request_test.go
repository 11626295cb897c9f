package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

func (f *fixture) honour() int {
	f.Helper()
	n, err := f.ledger.HonourRequests(f.ctx)
	require.NoError(f, err)
	return n
}

func (f *fixture) requests() int {
	f.Helper()
	return value[int](f, "SELECT count(*) FROM bide.delay_task_request")
}

// What the application says after its requests, once the execution has rolled
// back, and before or after a worker honours them.
func TestTheLastRequestCounts(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	soon, later := f.now().Add(time.Hour), f.now().Add(2*time.Hour)
	cancel := func(want outbox.Answer) func(string) {
		return func(id string) { require.Equal(t, want, f.cancel(id)) }
	}
	reschedule := func(at time.Time, want outbox.Answer) func(string) {
		return func(id string) { require.Equal(t, want, f.reschedule(id, at)) }
	}
	schedule := func(at time.Duration, want outbox.Answer) func(string) {
		return func(id string) {
			answer, err := f.schedule(id, f.row(id).FireAt.Add(at), nil)
			require.NoError(t, err)
			require.Equal(t, want, answer)
		}
	}
	same := func(id string) {
		require.Equal(t, outbox.Unchanged, f.reschedule(id, f.row(id).FireAt))
	}
	type calls []func(id string)
	for _, tt := range []struct {
		name    string
		during  calls // while a worker executes the task
		after   calls // when that has rolled back
		state   string
		at      time.Time // zero for the old time
		honours int
	}{
		{"cancel", calls{cancel(outbox.Requested)}, nil, "CANCELLED", time.Time{}, 1},
		{"reschedule", calls{reschedule(soon, outbox.Requested)}, nil, "WAITING", soon, 1},
		{"cancel, reschedule", calls{cancel(outbox.Requested), reschedule(soon, outbox.Requested)}, nil, "WAITING", soon, 2},
		{"reschedule, cancel", calls{reschedule(soon, outbox.Requested), cancel(outbox.Requested)}, nil, "CANCELLED", time.Time{}, 2},
		{"reschedule twice", calls{reschedule(soon, outbox.Requested), reschedule(later, outbox.Requested)}, nil, "WAITING", later, 2},
		{"cancel; reschedule", calls{cancel(outbox.Requested)}, calls{reschedule(soon, outbox.Moved)}, "WAITING", soon, 0},
		{"cancel; reschedule to the same time", calls{cancel(outbox.Requested)}, calls{same}, "SENT", time.Time{}, 0},
		{"cancel; schedule", calls{cancel(outbox.Requested)}, calls{schedule(time.Minute, outbox.Moved)}, "WAITING", time.Time{}, 0},
		{"cancel; schedule for the same time", calls{cancel(outbox.Requested)}, calls{schedule(0, outbox.Unchanged)}, "SENT", time.Time{}, 0},
		{"reschedule; cancel", calls{reschedule(soon, outbox.Requested)}, calls{cancel(outbox.Cancelled)}, "CANCELLED", time.Time{}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := f.lock(f.put(tt.name, -time.Minute, bide.Sent))
			for _, call := range tt.during {
				call(tt.name)
			}
			require.NoError(t, e.Abort(f.ctx))
			for _, call := range tt.after {
				call(tt.name)
			}
			require.Equal(t, tt.honours, f.honour())
			require.Equal(t, tt.state, f.state(tt.name))
			if !tt.at.IsZero() {
				require.WithinDuration(t, tt.at, f.row(tt.name).FireAt, 0)
			}
			require.Zero(t, f.requests())
		})
	}
}

func TestRequestsWaitForTheEndOfARun(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.put("1", -time.Minute, bide.Running)
	require.Equal(t, outbox.Requested, f.cancel("1"))
	require.Zero(t, f.honour())
	require.Equal(t, "RUNNING", f.state("1"))
	f.exec("UPDATE bide.delay_task SET status = 'WAITING', claim_token = NULL, lease_until = NULL")
	require.Equal(t, 1, f.honour())
	require.Equal(t, "CANCELLED", f.state("1"))
}

func TestHonouringNeverWaits(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	e := f.lock(f.put("1", -time.Minute, bide.Sent))
	require.Equal(t, outbox.Requested, f.cancel("1"))
	for range 3 {
		require.Zero(t, f.honour(), "returns at once while the task is held")
	}
	require.Equal(t, 1, f.requests())
	require.NoError(t, e.Abort(f.ctx))
	require.Equal(t, 1, f.honour())
}

func TestATaskWithARequestIsNotExecuted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.put("1", -time.Minute, bide.Waiting)
	e := f.lock(id)
	require.Equal(t, outbox.Requested, f.cancel("1"))
	require.NoError(t, e.Abort(f.ctx))

	e = f.lock(id)
	require.Empty(t, e.Tasks)
	require.NoError(t, e.Abort(f.ctx))
	e, err := f.ledger.LockTrial(f.ctx, id)
	require.NoError(t, err)
	require.Empty(t, e.Tasks)
	require.NoError(t, e.Abort(f.ctx))
	e, err = f.ledger.LockDue(f.ctx, bide.Due{Types: []string{closeOrder}, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, e.Tasks)
	require.NoError(t, e.Abort(f.ctx))
}

func TestARequestIsUndoneWithItsTransaction(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	e := f.lock(f.put("1", -time.Minute, bide.Sent))
	application := f.begin()
	change, err := outbox.DefaultSchema.Cancel(f.ctx, application, closeOrder, "1")
	require.NoError(t, err)
	require.Equal(t, outbox.Requested, change)
	require.NoError(t, application.Rollback(f.ctx))
	require.NoError(t, e.Abort(f.ctx))
	require.Zero(t, f.honour())
	require.Equal(t, "SENT", f.state("1"))
}

// Append-only: two applications that ask about one task do not meet.
func TestRequestsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	e := f.lock(f.put("1", -time.Minute, bide.Sent))
	var open []pgx.Tx
	for range 3 {
		tx := f.begin()
		change, err := outbox.DefaultSchema.Cancel(f.ctx, tx, closeOrder, "1")
		require.NoError(t, err)
		require.Equal(t, outbox.Requested, change)
		open = append(open, tx)
	}
	for _, tx := range open {
		require.NoError(t, tx.Commit(f.ctx))
	}
	require.NoError(t, e.Abort(f.ctx))
	require.Equal(t, 3, f.honour())
}

func TestRequestsThatCameTooLateAreCleared(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	e := f.lock(f.put("1", -time.Minute, bide.Sent))
	require.Equal(t, outbox.Requested, f.cancel("1"))
	require.Equal(t, outbox.Requested, f.reschedule("1", f.now().Add(time.Hour)))
	require.NoError(t, e.Finish(f.ctx, bide.ViaBroker, verdicts(e, bide.Skipped)))
	require.Equal(t, 2, f.honour())
	require.Equal(t, "SKIPPED", f.state("1"))
	require.Zero(t, f.requests())
}
