package outbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

func TestRescheduleSaysWhatItReached(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	now := f.now()
	const same, earlier, later = time.Hour, -time.Hour, 25 * time.Hour
	put := func(state bide.State) func(string) {
		return func(id string) {
			f.put(id, 0, state)
			f.exec("UPDATE bide.delay_task SET fire_at = $2, sends = 2, attempts = 1 WHERE biz_id = $1", id, now.Add(same))
		}
	}
	executed := func(id string) { f.execute(bide.Done, f.put(id, -time.Minute, bide.Sent)) }
	cancelled := func(id string) { f.put(id, time.Hour, bide.Waiting); f.cancel(id) }
	for _, tt := range []struct {
		task  string
		given func(id string)
		to    time.Duration
		want  outbox.Answer
		state string
	}{
		{"waiting, earlier", put(bide.Waiting), earlier, outbox.Moved, "WAITING"},
		{"waiting, later", put(bide.Waiting), later, outbox.Moved, "WAITING"},
		{"waiting, same time", put(bide.Waiting), same, outbox.Unchanged, "WAITING"},
		{"sent, earlier", put(bide.Sent), earlier, outbox.Moved, "WAITING"},
		{"sent, later", put(bide.Sent), later, outbox.Moved, "WAITING"},
		{"sent, same time", put(bide.Sent), same, outbox.Unchanged, "SENT"},
		{"failed, later", put(bide.Failed), later, outbox.Moved, "WAITING"},
		{"failed, same time", put(bide.Failed), same, outbox.Moved, "WAITING"},
		{"running, later", put(bide.Running), later, outbox.Requested, "RUNNING"},
		{"running, same time", put(bide.Running), same, outbox.Requested, "RUNNING"},
		{"done", executed, later, outbox.TooLate, "DONE"},
		{"cancelled", cancelled, later, outbox.TooLate, "CANCELLED"},
	} {
		t.Run(tt.task, func(t *testing.T) {
			tt.given(tt.task)
			require.Equal(t, tt.want, f.reschedule(tt.task, now.Add(tt.to)))
			require.Equal(t, tt.state, f.state(tt.task))
			if tt.want == outbox.Moved {
				got := f.row(tt.task)
				require.WithinDuration(t, now.Add(tt.to), got.FireAt, 0)
				require.Zero(t, got.Sends+got.Attempts, "it starts over")
			}
		})
	}
	require.Equal(t, outbox.NotFound, f.reschedule("never heard of", now))
}

// A pause before the next attempt belongs to the old time.
func TestRescheduleForgetsThePauseBeforeARetry(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	now := f.now()
	for name, to := range map[string]time.Duration{"before the pause ends": time.Minute, "after it": 48 * time.Hour, "past": -time.Hour} {
		f.put(name, -time.Hour, bide.Waiting)
		f.wear(name) // a day's pause
		require.Equal(t, outbox.Moved, f.reschedule(name, now.Add(to)))
		require.WithinDuration(t, now.Add(to), value[time.Time](f, "SELECT run_at FROM bide.delay_task WHERE biz_id = $1", name), 0, name)
	}
}

// The message of the old time is on its way when the new one is set.
func TestRescheduleAfterTheMessageLeft(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	id := f.put("1", time.Second/2, bide.Waiting)
	batch, err := f.ledger.Claim(f.ctx, []bide.Window{{Level: 1, From: 0, To: time.Minute, Limit: 10}})
	require.NoError(t, err)
	require.Len(t, batch.Tasks, 1)
	require.Equal(t, outbox.Moved, f.reschedule("1", f.now().Add(time.Hour)))
	require.NoError(t, f.ledger.Settle(f.ctx, batch.ID, []int64{id}))

	tasks, now, err := f.ledger.Peek(f.ctx, []int64{id})
	require.NoError(t, err)
	require.Len(t, tasks, 1)
	require.False(t, tasks[0].RunAt.Equal(batch.Tasks[0].RunAt), "the message's time tells that it is stale")
	require.Greater(t, tasks[0].RunAt.Sub(now), 59*time.Minute)
	e := f.lock(id)
	require.Empty(t, e.Tasks, "a stale message cannot fire it early")
	require.NoError(t, e.Abort(f.ctx))

	require.Equal(t, outbox.Moved, f.reschedule("1", f.now().Add(-time.Second)))
	f.execute(bide.Done, id)
	require.Equal(t, "DONE", f.state("1"), "moved into the past it is due at once")
}
