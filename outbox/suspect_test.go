package outbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// die ends an execution as the death of its worker does: the session is gone,
// and nobody tidies up.
func (f *fixture) die(e *outbox.Execution) {
	f.Helper()
	pid := e.Conn().Conn().PgConn().PID()
	require.True(f, value[bool](f, "SELECT pg_terminate_backend($1, 20000)", int(pid)))
	err := e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done))
	require.ErrorIs(f, err, outbox.ErrFinish)
}

func (f *fixture) journal() int {
	f.Helper()
	return value[int](f, "SELECT count(*) FROM bide.sweep_batch")
}

func TestADeadExecutionMakesSuspects(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	killer, neighbour := f.put("killer", -time.Hour, bide.Waiting), f.put("neighbour", -time.Minute, bide.Sent)
	e := f.lockDue(due())
	require.Equal(t, []int64{killer, neighbour}, taskIDs(e.Tasks))
	require.Equal(t, 1, f.journal())
	f.die(e)

	fresh := f.put("fresh", -time.Minute, bide.Waiting)
	e = f.lockDue(due())
	require.Equal(t, []int64{fresh}, taskIDs(e.Tasks))
	require.ElementsMatch(t, []int64{killer, neighbour}, taskIDs(e.Suspects))
	require.NoError(t, e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done)))
	require.Equal(t, 1, f.journal(), "the dead one's stays until its tasks are tried")

	// Each is tried alone: the neighbour goes free at once.
	trial, ok, err := f.ledger.Reclaim(f.ctx, neighbour, 3)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, bide.Sent, trial.State)
	e, err = f.ledger.LockTrial(f.ctx, neighbour)
	require.NoError(t, err)
	require.Equal(t, []int64{neighbour}, taskIDs(e.Tasks))
	require.NoError(t, e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done)))
	require.Equal(t, "DONE", f.state("neighbour"))

	// The killer dies twice more and is known by then.
	for n := 1; n <= 2; n++ {
		trial, ok, err := f.ledger.Reclaim(f.ctx, killer, 3)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, bide.Waiting, trial.State)
		e, err := f.ledger.LockTrial(f.ctx, killer)
		require.NoError(t, err)
		require.Equal(t, n, e.Tasks[0].Reclaims)
		f.die(e)
		e = f.lockDue(due())
		require.Empty(t, e.Tasks)
		require.Equal(t, []int64{killer}, taskIDs(e.Suspects))
		require.NoError(t, e.Abort(f.ctx))
		_, ok, err = f.ledger.Reclaim(f.ctx, killer, 3)
		require.NoError(t, err)
		require.False(t, ok, "not so soon: the network may be at fault")
		f.exec("UPDATE bide.delay_task SET updated_at = updated_at - interval '5 seconds' WHERE id = $1", killer)
	}
	trial, ok, err = f.ledger.Reclaim(f.ctx, killer, 3)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, bide.Failed, trial.State)
	require.Contains(t, trial.LastError, "3 times")
	require.Equal(t, "FAILED", f.state("killer"))
	require.Empty(t, f.found(due()))
}

func TestAnOrderlyEndMakesNoSuspects(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.put("1", -time.Hour, bide.Waiting)
	lock := map[string]func() *outbox.Execution{
		"sweep": func() *outbox.Execution { return f.lockDue(due()) },
		"named": func() *outbox.Execution {
			e, err := f.ledger.Lock(f.ctx, []int64{id}, true)
			require.NoError(t, err)
			return e
		},
	}
	for name, begin := range lock {
		for range 2 {
			e := begin()
			require.Equal(t, []int64{id}, taskIDs(e.Tasks), name)
			require.Empty(t, e.Suspects)
			require.Equal(t, 1, f.journal())
			require.NoError(t, e.Abort(f.ctx))
			require.Zero(t, f.journal())
		}
	}
	// A statement that fails is an orderly end as well.
	e := f.lockDue(due())
	_, err := e.Conn().Exec(f.ctx, "SELECT 1/0")
	require.ErrorContains(t, err, "division by zero")
	require.NoError(t, e.Abort(f.ctx))
	require.Zero(t, f.journal())

	e = f.lockDue(due())
	require.Equal(t, []int64{id}, taskIDs(e.Tasks))
	require.NoError(t, e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done)))
	require.Zero(t, f.journal())
	require.Equal(t, "DONE", f.state("1"))
}

// Nor does the server's word that this process has been too slow.
func TestASessionThatIdledTooLongMakesNoSuspects(t *testing.T) {
	t.Parallel()
	f := setUp(t, "deadlock_timeout = '200ms'")
	id := f.put("1", -time.Hour, bide.Waiting)
	e := f.lockDue(due())
	require.Equal(t, []int64{id}, taskIDs(e.Tasks))
	pid := int(e.Conn().Conn().PgConn().PID())
	require.Eventually(t, func() bool { return value[int](f, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid) == 0 },
		hung, 10*time.Millisecond)
	require.ErrorIs(t, e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done)), outbox.ErrFinish)
	require.Zero(t, f.journal())
}

// A broker's redelivery tells of a death, so its executions keep no journal.
func TestOnlyTheSweepKeepsAJournal(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.put("1", -time.Hour, bide.Sent)
	e := f.lock(id)
	require.Zero(t, f.journal())
	require.NoError(t, e.Abort(f.ctx))
	e = f.lockDue(bide.Due{Types: []string{"another_type"}, Limit: 10})
	require.Zero(t, f.journal(), "nor do those that found nothing")
	require.NoError(t, e.Abort(f.ctx))
}

// The record of a trial holds until the task has ended with a word.
func TestATaskOnTrialIsASuspectToOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.put("1", -time.Hour, bide.Sent)
	_, ok, err := f.ledger.Reclaim(f.ctx, id, 3)
	require.NoError(t, err)
	require.True(t, ok)
	for _, begin := range []func() *outbox.Execution{
		func() *outbox.Execution { return f.lock(id) },
		func() *outbox.Execution { return f.lockDue(due()) },
	} {
		e := begin()
		require.Empty(t, e.Tasks)
		require.Equal(t, []int64{id}, taskIDs(e.Suspects))
		require.NoError(t, e.Abort(f.ctx))
	}
	_, err = f.ledger.Retry(f.ctx, []int64{id}, []string{"an error is a word"}, patientBackoff)
	require.NoError(t, err)
	require.Zero(t, f.row("1").Reclaims)
}

func TestReclaimLeavesOthersTasksAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	early, held, failed := f.put("early", time.Hour, bide.Sent), f.put("held", -time.Hour, bide.Sent), f.put("failed", -time.Hour, bide.Failed)
	e := f.lock(held)
	for _, id := range []int64{early, held, failed, 1 << 40} {
		_, ok, err := f.ledger.Reclaim(f.ctx, id, 3)
		require.NoError(t, err)
		require.False(t, ok)
	}
	require.NoError(t, e.Abort(f.ctx))
	require.Zero(t, value[int](f, "SELECT sum(reclaims)::int FROM bide.delay_task"))
}

func TestHousekeepingForgetsOldJournals(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.exec(`INSERT INTO bide.sweep_batch (begun_at, ids) VALUES
		(now() - interval '61 minutes', '{1}'), (now() - interval '59 minutes', '{2}')`)
	require.NoError(t, f.ledger.KeepHouse(f.ctx, 24*time.Hour))
	require.Equal(t, 1, f.journal())
}
