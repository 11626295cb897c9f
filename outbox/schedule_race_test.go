package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// A worker holds the task; the application schedules its key and must wait.
func TestScheduleMeetsAnExecution(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	finish := func(e *outbox.Execution) error {
		return e.Finish(f.ctx, bide.ViaBroker, verdicts(e, bide.Done))
	}
	abort := func(e *outbox.Execution) error { return e.Abort(f.ctx) }
	for _, tt := range []struct {
		name      string
		end       func(*outbox.Execution) error
		at        time.Duration
		want      outbox.Answer
		live      int
		sameTask  bool
		histories int
	}{
		{"same time, finished", finish, 0, outbox.Finished, 0, false, 1},
		{"same time, rolled back", abort, 0, outbox.Unchanged, 1, true, 0},
		{"later, finished", finish, time.Hour, outbox.Created, 1, false, 1},
		{"later, rolled back", abort, time.Hour, outbox.Moved, 1, true, 0},
		{"earlier, finished", finish, -time.Hour, outbox.Created, 1, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := f.put(tt.name, -time.Minute, bide.Sent)
			at := f.row(tt.name).FireAt.Add(tt.at)
			e := f.lock(id)
			scheduled := start(func() (outbox.Answer, error) { return f.schedule(tt.name, at, nil) })
			f.awaitBlocked(1)
			require.NoError(t, tt.end(e))
			answer := <-scheduled
			require.NoError(t, answer.err)
			require.Equal(t, tt.want, answer.got)
			require.Equal(t, tt.live, f.live(tt.name))
			require.Equal(t, tt.sameTask, value[bool](f, "SELECT EXISTS (SELECT FROM bide.delay_task WHERE id = $1)", id))
			require.Equal(t, tt.histories, value[int](f, "SELECT count(*) FROM bide.delay_task_history WHERE id = $1", id))
		})
	}
}

// A task that repeats itself: its handler schedules its own key again.
func TestAHandlerSchedulesItsOwnKeyAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, tt := range []struct {
		name string
		in   time.Duration
	}{
		{"to come", time.Hour},
		{"at once", 0},
		{"already past", -time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := f.put(tt.name, -time.Hour, bide.Sent)
			e := f.lock(id)
			var answer outbox.Answer
			require.NoError(t, e.Conn().QueryRow(f.ctx, "SELECT bide.schedule_in($1, $2, $3)", closeOrder, tt.name, tt.in).Scan(&answer))
			require.Equal(t, outbox.Moved, answer)
			require.NoError(t, e.Finish(f.ctx, bide.ViaBroker, verdicts(e, bide.Done)))
			require.Equal(t, "WAITING", f.state(tt.name), "the last word wins: the task lives on")
		})
	}
}

func TestOfTwoSchedulesTheLastWins(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	base := f.now().Add(time.Hour)
	for _, tt := range []struct {
		name string
		end  func(tx pgx.Tx) error
		want outbox.Answer
	}{
		{"the first commits", func(tx pgx.Tx) error { return tx.Commit(f.ctx) }, outbox.Moved},
		{"the first rolls back", func(tx pgx.Tx) error { return tx.Rollback(f.ctx) }, outbox.Created},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tx := f.begin()
			answer, err := outbox.DefaultSchema.Schedule(f.ctx, tx, closeOrder, tt.name, base, nil)
			require.NoError(t, err)
			require.Equal(t, outbox.Created, answer)
			second := start(func() (outbox.Answer, error) { return f.schedule(tt.name, base.Add(time.Minute), nil) })
			f.awaitBlocked(1)
			require.NoError(t, tt.end(tx))
			got := <-second
			require.NoError(t, got.err)
			require.Equal(t, tt.want, got.got)
			require.WithinDuration(t, base.Add(time.Minute), f.row(tt.name).FireAt, 0)
		})
	}
}

func TestACrowdThatSchedulesOneKeyMakesOneTask(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const crowd, rounds = 8, 10
	base := f.now().Add(time.Hour)
	for round := range rounds {
		key := fmt.Sprint(round)
		var calls []<-chan outcome[outbox.Answer]
		for i := range crowd {
			calls = append(calls, start(func() (outbox.Answer, error) {
				return f.schedule(key, base.Add(time.Duration(i)*time.Second), i)
			}))
		}
		answers := map[outbox.Answer]int{}
		for _, call := range calls {
			answer := <-call
			require.NoError(t, answer.err)
			answers[answer.got]++
		}
		require.Equal(t, map[outbox.Answer]int{outbox.Created: 1, outbox.Moved: crowd - 1}, answers)
		require.Equal(t, 1, f.live(key))
		got := f.row(key)
		last := got.FireAt.Sub(base) / time.Second
		require.Equal(t, fmt.Sprint(int(last)), *got.Payload, "time and payload are one caller's")
	}
}
