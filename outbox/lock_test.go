package outbox_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// due asks for everything that is overdue.
func due() bide.Due { return bide.Due{Types: []string{closeOrder}, Limit: 100} }

func (f *fixture) lockDue(d bide.Due) *outbox.Execution {
	f.Helper()
	e, err := f.ledger.LockDue(f.ctx, d)
	require.NoError(f, err)
	return e
}

// found locks what is overdue, says what, and lets go of it.
func (f *fixture) found(d bide.Due) []int64 {
	f.Helper()
	e := f.lockDue(d)
	require.NoError(f, e.Abort(f.ctx))
	overdue, now, err := f.ledger.Overdue(f.ctx, d)
	require.NoError(f, err)
	require.WithinDuration(f, e.Now, now, time.Minute)
	require.ElementsMatch(f, taskIDs(e.Tasks), taskIDs(overdue), "Overdue lists what LockDue locks")
	return taskIDs(e.Tasks)
}

func TestLockTakesTheDueOnesWhole(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	at := f.now().Add(-time.Minute)
	_, err := f.schedule("1", at, map[string]int{"sku": 1})
	require.NoError(t, err)
	id := value[int64](f, `UPDATE bide.delay_task SET status = 'SENT', sends = 2, attempts = 1, retry_at = fire_at + interval '1 second' RETURNING id`)
	e := f.lock(id)
	require.Len(t, e.Tasks, 1)
	got := e.Tasks[0]
	require.WithinDuration(t, at, got.FireAt, 0)
	require.WithinDuration(t, at.Add(time.Second), got.RunAt, 0)
	require.WithinDuration(t, f.now(), e.Now, time.Minute)
	got.FireAt, got.RunAt = time.Time{}, time.Time{}
	require.Equal(t, bide.Task{
		ID: id, BizType: closeOrder, BizID: "1", State: bide.Sent, Sends: 2, Attempts: 1, Payload: json.RawMessage(`{"sku": 1}`),
	}, got)
	require.NoError(t, e.Abort(f.ctx))
	require.Equal(t, "SENT", f.state("1"), "aborted, it is as it was")
}

// What Lock leaves out is gone, held or not due: Peek says which.
func TestGoneHeldAndNotDueAreDifferentAnswers(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	gone, held, early := f.put("gone", -time.Minute, bide.Sent), f.put("held", -time.Minute, bide.Sent), f.put("early", time.Hour, bide.Sent)
	running, failed := f.put("running", -time.Minute, bide.Running), f.put("failed", -time.Minute, bide.Failed)
	free := f.put("free", -time.Minute, bide.Waiting)
	f.execute(bide.Done, gone)
	other := f.lock(held)

	ids := []int64{gone, held, early, running, failed, free}
	e := f.lock(ids...)
	require.Equal(t, []int64{free}, taskIDs(e.Tasks))
	require.NoError(t, e.Abort(f.ctx))
	tasks, now, err := f.ledger.Peek(f.ctx, ids)
	require.NoError(t, err)
	type seen struct {
		state bide.State
		due   bool
	}
	answers := map[int64]seen{}
	for _, task := range tasks {
		answers[task.ID] = seen{task.State, !task.RunAt.After(now)}
		require.Equal(t, closeOrder, task.BizType)
	}
	require.Equal(t, map[int64]seen{
		held: {bide.Sent, true}, early: {bide.Sent, false},
		running: {bide.Running, true}, failed: {bide.Failed, true}, free: {bide.Waiting, true},
	}, answers, "the one that is gone is missing")
	require.NoError(t, other.Abort(f.ctx))

	tasks, now, err = f.ledger.Peek(f.ctx, nil)
	require.NoError(t, err)
	require.Empty(t, tasks)
	require.WithinDuration(t, f.now(), now, time.Minute, "the clock is told all the same")
}

// An execution that began a moment too soon finds nothing, however long it
// lasts; a new one does.
func TestATaskIsDueByTheClockOfTheTransaction(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.put("1", 200*time.Millisecond, bide.Sent)
	early := f.lock(id)
	require.Empty(t, early.Tasks)
	require.Eventually(t, func() bool {
		tasks, now, err := f.ledger.Peek(f.ctx, []int64{id})
		require.NoError(t, err)
		return !tasks[0].RunAt.After(now)
	}, hung, 5*time.Millisecond)
	var locked int
	require.NoError(t, early.Conn().QueryRow(f.ctx, "SELECT count(*) FROM bide.delay_task WHERE run_at <= now()").Scan(&locked))
	require.Zero(t, locked)
	require.NoError(t, early.Abort(f.ctx))
	f.execute(bide.Done, id)
	require.Equal(t, "DONE", f.state("1"))
}

func TestSweepTakesWaitingAtOnceAndSentAfterTheGrace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	waiting, sent := f.put("1", -time.Minute, bide.Waiting), f.put("2", -time.Minute, bide.Sent)
	f.put("3", -time.Minute, bide.Running)
	f.put("4", -time.Minute, bide.Failed)
	f.put("5", time.Minute, bide.Waiting)
	f.put("6", time.Minute, bide.Sent)
	d := due()
	require.ElementsMatch(t, []int64{waiting, sent}, f.found(d))
	d.Grace = 50 * time.Second
	require.ElementsMatch(t, []int64{waiting, sent}, f.found(d))
	d.Grace = time.Hour
	require.Equal(t, []int64{waiting}, f.found(d))
	d.Types = []string{"another_type"}
	require.Empty(t, f.found(d))
}

func TestSweepTakesTheOldestFirstUpToTheLimitOfEachState(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var waiting, sent []int64
	for i := range 3 {
		late := -time.Hour * time.Duration(10-i)
		waiting = append(waiting, f.put(string(rune('a'+i)), late, bide.Waiting))
		sent = append(sent, f.put(string(rune('k'+i)), late, bide.Sent))
	}
	d := due()
	d.Limit = 2
	require.Equal(t, append(waiting[:2:2], sent[:2]...), f.found(d))
	held := f.lock(waiting[0])
	e := f.lockDue(d)
	require.Equal(t, append(waiting[1:3:3], sent[:2]...), taskIDs(e.Tasks), "a held one does not use up the limit")
	require.NoError(t, e.Abort(f.ctx))
	require.NoError(t, held.Abort(f.ctx))
}

// Rows do appear behind a mark; a full scan finds them.
func TestSweepScansFromItsMarks(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mark := f.now().Truncate(time.Second).Add(-time.Minute)
	put := func(bizID string, at time.Time, state string) int64 {
		return value[int64](f, "INSERT INTO bide.delay_task (biz_type, biz_id, fire_at, status) VALUES ($1, $2, $3, $4::text::bide.task_state) RETURNING id",
			closeOrder, bizID, at, state)
	}
	behind, at := put("behind", mark.Add(-time.Microsecond), "WAITING"), put("at", mark, "WAITING")
	sentBehind, sentAt := put("sent behind", mark.Add(-time.Microsecond), "SENT"), put("sent at", mark, "SENT")
	d := due()
	d.WaitingFrom = mark
	require.ElementsMatch(t, []int64{at, sentBehind, sentAt}, f.found(d))
	d.SentFrom = mark
	require.ElementsMatch(t, []int64{at, sentAt}, f.found(d))
	d.WaitingFrom = time.Time{}
	require.ElementsMatch(t, []int64{behind, at, sentAt}, f.found(d))
	require.Len(t, f.found(due()), 4)
	first := put("first of all times", time.Unix(0, 0), "WAITING")
	require.Equal(t, first, f.found(due())[0])
}
