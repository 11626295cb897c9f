package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// ending is what history says of a task.
type ending struct {
	Result, Via               string
	Note                      *string
	Sends, Attempts, Reclaims int
	OnTime                    bool
	Payload                   *string
}

func (f *fixture) ending(bizID string) ending {
	f.Helper()
	rows, err := f.pool.Query(f.ctx, `SELECT result::text, via::text, last_error, sends, attempts, reclaims,
		finished_at >= fire_at, payload::text FROM bide.delay_task_history WHERE biz_id = $1`, bizID)
	require.NoError(f, err)
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[ending])
	require.NoError(f, err)
	return got
}

func TestHistoryTellsHowATaskEnded(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := f.schedule("done", f.now().Add(-time.Hour), []int{1})
	require.NoError(t, err)
	for _, id := range []string{"skipped", "open"} {
		f.put(id, -time.Minute, bide.Sent)
	}
	f.exec("UPDATE bide.delay_task SET sends = 3, attempts = 2, last_error = 'no stock' WHERE biz_id IN ('done', 'skipped')")
	e := f.lockDue(due())
	require.Len(t, e.Tasks, 3)
	var list []outbox.Verdict
	for _, task := range e.Tasks {
		switch task.BizID {
		case "done":
			list = append(list, outbox.Verdict{TaskID: task.ID, Result: bide.Done})
		case "skipped":
			list = append(list, outbox.Verdict{TaskID: task.ID, Result: bide.Skipped, Note: "paid in time"})
		}
	}
	require.NoError(t, e.Finish(f.ctx, bide.ViaSweep, list))
	require.Equal(t, ending{"DONE", "sweep", new("no stock"), 3, 2, 0, true, new("[1]")}, f.ending("done"), "without a note the last failure stays")
	require.Equal(t, ending{"SKIPPED", "sweep", new("paid in time"), 3, 2, 0, true, nil}, f.ending("skipped"))
	require.Equal(t, "SENT", f.state("open"), "without a verdict it stays as it was")
	require.Equal(t, 1, value[int](f, "SELECT count(*) FROM bide.delay_task"))
}

// The effect and the end of the task are one transaction.
func TestTheEffectAndTheEndCommitTogether(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.exec("CREATE TABLE effects (id bigint)")
	effect := func(e *outbox.Execution) {
		_, err := e.Conn().Exec(f.ctx, "INSERT INTO effects SELECT unnest($1::bigint[])", taskIDs(e.Tasks))
		require.NoError(t, err)
	}
	id := f.put("1", -time.Minute, bide.Sent)
	for _, end := range []func(e *outbox.Execution){
		func(e *outbox.Execution) { require.NoError(t, e.Abort(f.ctx)) },
		f.die,
		func(e *outbox.Execution) { // the finish itself is refused
			err := e.Finish(f.ctx, "no such way", verdicts(e, bide.Done))
			require.ErrorIs(t, err, outbox.ErrFinish)
		},
	} {
		e := f.lock(id)
		require.Len(t, e.Tasks, 1)
		effect(e)
		end(e)
		require.Zero(t, value[int](f, "SELECT count(*) FROM effects"))
		require.Equal(t, "SENT", f.state("1"))
	}
	e := f.lock(id)
	effect(e)
	require.NoError(t, e.Finish(f.ctx, bide.ViaBroker, verdicts(e, bide.Done)))
	require.Equal(t, 1, value[int](f, "SELECT count(*) FROM effects"))
	require.Equal(t, "DONE", f.state("1"))
}

func TestAHandlerCancelsItsOwnTask(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	e := f.lock(f.put("1", -time.Minute, bide.Sent))
	var answer string
	require.NoError(t, e.Conn().QueryRow(f.ctx, "SELECT bide.cancel($1, '1')", closeOrder).Scan(&answer))
	require.Equal(t, "cancelled", answer)
	require.NoError(t, e.Finish(f.ctx, bide.ViaBroker, verdicts(e, bide.Done)))
	require.Equal(t, []string{"CANCELLED"}, values[string](f, "SELECT state FROM bide.task"))
}

// An execution ends only tasks that it holds.
func TestFinishLeavesOthersTasksAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine, other := f.put("mine", -time.Minute, bide.Sent), f.put("other", -time.Minute, bide.Sent)
	running := f.put("running", -time.Minute, bide.Running)
	e := f.lock(mine)
	require.NoError(t, e.Finish(f.ctx, bide.ViaBroker, []outbox.Verdict{
		{TaskID: mine, Result: bide.Done},
		{TaskID: other, Result: bide.Done},
		{TaskID: running, Result: bide.Done},
		{TaskID: mine, Result: bide.Done}, // said twice
	}))
	require.Equal(t, []string{"mine"}, values[string](f, "SELECT biz_id FROM bide.delay_task_history"))
	require.Equal(t, []string{"SENT", "RUNNING"}, f.states())
}

// A worker that is paused loses its locks before anybody suffers, and what it
// does when it comes back fails.
func TestAPausedWorkerLosesItsLocks(t *testing.T) {
	t.Parallel()
	f := setUp(t, "deadlock_timeout = '1s'")
	id := f.put("1", -time.Minute, bide.Sent)
	e := f.lock(id)
	require.Len(t, e.Tasks, 1)
	begun := time.Now()
	f.exec("SELECT FROM bide.delay_task WHERE id = $1 FOR UPDATE", id)
	require.Less(t, time.Since(begun), 10*time.Second)
	err := e.Finish(f.ctx, bide.ViaBroker, verdicts(e, bide.Done))
	require.ErrorIs(t, err, outbox.ErrFinish)
	require.Equal(t, "SENT", f.state("1"))
}
