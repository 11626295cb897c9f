package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// within an hour, up to ten.
func anHour() bide.Window { return bide.Window{Level: 1, From: 0, To: time.Hour, Limit: 10} }

// claimed puts the tasks and claims them.
func (f *fixture) claimed(bizIDs ...string) bide.Batch {
	f.Helper()
	for _, id := range bizIDs {
		f.put(id, time.Minute, bide.Waiting)
	}
	batch := f.claim(anHour())
	require.Len(f, batch.Tasks, len(bizIDs))
	return batch
}

// states lists the tasks' states in the order of their ids.
func (f *fixture) states() []string {
	f.Helper()
	return values[string](f, "SELECT status::text FROM bide.delay_task ORDER BY id")
}

func (f *fixture) age(batch bide.Batch) {
	f.Helper()
	require.Equal(f, 1, f.exec("UPDATE bide.relay_batch SET claimed_at = now() - interval '1 hour' WHERE id = $1", batch.ID))
}

func TestSettleEndsABatchAndGivesBackWhatWasRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	batch := f.claimed("1", "2", "3")
	ids := claimedIDs(batch)
	require.NoError(t, f.ledger.Settle(f.ctx, batch.ID, ids[:1]))
	require.Equal(t, []string{"WAITING", "SENT", "SENT"}, f.states())
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.relay_batch"))

	again := f.claim(anHour())
	require.Equal(t, ids[:1], claimedIDs(again))
	require.NoError(t, f.ledger.Settle(f.ctx, again.ID, nil))
	require.Equal(t, []string{"SENT", "SENT", "SENT"}, f.states())
}

// A task that has moved on since the claim belongs to somebody else.
func TestSettleLeavesTasksThatMovedOn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	batch := f.claimed("running", "failed", "cancelled", "held")
	f.exec(`UPDATE bide.delay_task SET status = 'RUNNING', claim_token = gen_random_uuid(), lease_until = now() WHERE biz_id = 'running'`)
	f.exec("UPDATE bide.delay_task SET status = 'FAILED' WHERE biz_id = 'failed'")
	f.cancel("cancelled")
	application := f.begin()
	_, err := application.Exec(f.ctx, "SELECT FROM bide.delay_task WHERE biz_id = 'held' FOR UPDATE")
	require.NoError(t, err)
	require.NoError(t, f.ledger.Settle(f.ctx, batch.ID, claimedIDs(batch)), "and waits for nobody")
	require.Equal(t, []string{"RUNNING", "FAILED", "SENT"}, f.states())
}

// A relay that was taken for dead comes back: its tasks are another's by now.
func TestSettleAfterAnotherRelayTookOver(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	late := f.claimed("1")
	f.age(late)
	n, err := f.ledger.Recover(f.ctx, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	mine := f.claim(anHour())
	require.Equal(t, claimedIDs(late), claimedIDs(mine))
	require.NoError(t, f.ledger.Settle(f.ctx, late.ID, claimedIDs(late)))
	require.Equal(t, []string{"SENT"}, f.states(), "the other relay's message is on its way")
	require.Equal(t, 1, value[int](f, "SELECT count(*) FROM bide.relay_batch WHERE id = $1", mine.ID))
}

func TestRecoverTakesOverDeadRelaysBatches(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	dead, alive := f.claimed("1", "2", "3", "4"), f.claimed("5")
	f.age(dead)
	f.exec(`UPDATE bide.delay_task SET status = 'RUNNING', claim_token = gen_random_uuid(), lease_until = now() WHERE biz_id = '2'`)
	f.cancel("3")
	tx := f.begin()
	_, err := tx.Exec(f.ctx, "SELECT FROM bide.delay_task WHERE biz_id = '4' FOR UPDATE")
	require.NoError(t, err)
	n, err := f.ledger.Recover(f.ctx, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 1, n, "what is still SENT and free")
	require.Equal(t, []string{"WAITING", "RUNNING", "SENT", "SENT"}, f.states())
	require.Equal(t, []int64{alive.ID}, values[int64](f, "SELECT id FROM bide.relay_batch"), "a lease that still runs is respected")
}

func TestSeveralRelaysRecoverAtOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const batches = 50 // more than one statement takes over
	for i := range batches {
		f.exec("INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) VALUES ('a', $1::int::text, now() + interval '1 minute')", i)
		f.age(f.claim(anHour()))
	}
	recovered := 0
	for recovered < batches {
		calls := []<-chan outcome[int]{}
		for range 3 {
			calls = append(calls, start(func() (int, error) { return f.ledger.Recover(f.ctx, time.Minute) }))
		}
		before := recovered
		for _, call := range calls {
			got := <-call
			require.NoError(t, got.err)
			recovered += got.got
		}
		require.Greater(t, recovered, before)
	}
	require.Equal(t, batches, recovered, "none twice")
	require.Equal(t, []string{"WAITING"}, slices.Compact(f.states()))
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.relay_batch"))
}

// Times are compared in microseconds: a message of the time before a
// reschedule says nothing about the task.
func TestGiveBackGoesByTheMessagesTime(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	batch := f.claimed("exact", "off by 1 µs", "running", "held")
	slices.SortFunc(batch.Tasks, func(a, b bide.Claimed) int { return int(a.TaskID - b.TaskID) })
	ids, runAts := []int64{}, []time.Time{}
	for _, c := range batch.Tasks {
		ids, runAts = append(ids, c.TaskID), append(runAts, c.RunAt)
	}
	runAts[1] = runAts[1].Add(time.Microsecond)
	f.exec(`UPDATE bide.delay_task SET status = 'RUNNING', claim_token = gen_random_uuid(), lease_until = now() WHERE biz_id = 'running'`)
	tx := f.begin()
	_, err := tx.Exec(f.ctx, "SELECT FROM bide.delay_task WHERE biz_id = 'held' FOR UPDATE")
	require.NoError(t, err)
	n, err := f.ledger.GiveBack(f.ctx, ids, runAts)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []string{"WAITING", "SENT", "RUNNING", "SENT"}, f.states())
}
