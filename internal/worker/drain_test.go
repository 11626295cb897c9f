package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// A worker with tasks everywhere: held, waiting in a lane, under suspicion,
// running. What runs ends, the rest goes back, every message is acknowledged.
func TestDrainEmptiesTheHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := dues(100, 0)
		for i := range tasks[:10] {
			tasks[i].RunAt = tasks[i].RunAt.Add(1500 * time.Millisecond)
		}
		tasks[99].Reclaims, tasks[98].Reclaims, tasks[97].Reclaims = 1, 1, 1
		b := newBook(tasks...)
		b.types = map[string]int{"close": 20}
		b.takes = 500 * time.Millisecond
		r := begin(t, Config{}, b, newLine())
		r.deliver(tasks...)
		pass(100 * time.Millisecond)
		require.Equal(t, 10, r.worker.Held())
		require.Len(t, r.of("execute", "try"), 3)

		begun := time.Now()
		require.NoError(t, r.stop())
		require.Equal(t, 900*time.Millisecond, time.Since(begun))
		require.Zero(t, r.unacked())
		require.Zero(t, r.worker.Held())
		require.Equal(t, 62, r.finished(bide.ViaBroker), "what had left its lane to wait for a slot, too")
		for _, task := range r.left() {
			require.Equal(t, bide.Waiting, task.State, "task %d", task.ID)
		}
	})
}

// What the executions of the last moment could not finish goes back as well.
func TestDrainGivesBackWhatIsPutOff(t *testing.T) {
	for name, set := range map[string]func(*book){
		"a locked order":    func(b *book) { b.orders[1] = true },
		"a locked row":      func(b *book) { b.rows[1] = true },
		"no database":       func(b *book) { b.fault = func([]int64) error { return ErrUnavailable } },
		"a lost session":    func(b *book) { b.fault = func([]int64) error { return ErrLost } },
		"gave way to other": func(b *book) { b.fault = func([]int64) error { return ErrContended } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBook(due(1, 0))
				b.takes = 300 * time.Millisecond
				set(b)
				r := begin(t, Config{}, b, newLine())
				r.deliver(due(1, 0))
				pass(100 * time.Millisecond)
				require.NoError(t, r.stop())
				require.Len(t, r.of("execute"), 1, "nothing is begun again")
				require.Equal(t, bide.Waiting, r.left()[0].State)
				require.Zero(t, r.unacked())
			})
		})
	}
}

// A broker passes on what it had already sent when it was told to stop.
func TestDrainTakesLateArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := dues(3, 0)
		tasks[2].RunAt = tasks[2].RunAt.Add(time.Second)
		b := newBook(tasks...)
		b.takes = 300 * time.Millisecond
		r := begin(t, Config{}, b, newLine())
		r.deliver(tasks[0])
		pass(100 * time.Millisecond)
		ended := make(chan error)
		go func() { ended <- r.stop() }()
		synctest.Wait()
		r.deliver(tasks[1], tasks[2])
		require.NoError(t, <-ended)
		require.Equal(t, 1, r.finished(bide.ViaBroker))
		require.Len(t, r.of("execute"), 1)
		for _, task := range r.left() {
			require.Equal(t, bide.Waiting, task.State)
		}
		require.Zero(t, r.unacked())
	})
}

func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(due(1, 0))
		b.takes = time.Hour
		l := newLine()
		l.patience = 5 * time.Second
		r := begin(t, Config{Drain: 5 * time.Second}, b, l)
		r.deliver(due(1, 0))
		pass(time.Second)
		begun := time.Now()
		require.NoError(t, r.stop())
		require.Equal(t, 5*time.Second, time.Since(begun))
		require.Equal(t, bide.Sent, r.left()[0].State, "the broker's, to deliver again")
	})
}

// Without a ledger to give them back to, the broker keeps the messages.
func TestDrainAcknowledgesNothingThatIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(dues(3, time.Second)...)
		l := newLine()
		l.patience = time.Second
		r := begin(t, Config{Drain: time.Second}, b, l)
		r.deliver(dues(3, time.Second)...)
		synctest.Wait()
		r.fail("give back", ErrUnavailable)
		require.NoError(t, r.stop())
		require.Equal(t, 3, r.unacked())
	})
}

// The sweep's tasks have no message: they are simply dropped, for others to
// find.
func TestDrainDropsWhatTheSweepHasInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(waiting(dues(10, 0)...)...)
		b.types = map[string]int{"close": 1}
		b.takes = time.Second
		r := begin(t, Config{}, b, nil)
		pass(500 * time.Millisecond)
		require.NoError(t, r.stop())
		require.LessOrEqual(t, r.finished(bide.ViaSweep), 3)
		require.Zero(t, r.worker.swept.size())
	})
}

func TestASubscriberThatCannotGoOnEndsTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("queue exists with other arguments")
		r := launch(Config{}, newBook(due(1, time.Second)), newLine())
		r.deliver(due(1, time.Second))
		synctest.Wait()
		r.fatal <- broken
		pass(time.Second)
		require.ErrorIs(t, r.stop(), broken)
		require.Equal(t, bide.Waiting, r.left()[0].State)
	})
}

func TestRequestsAreHonouredNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{SweepEvery: 100 * time.Millisecond}, newBook(), newLine())
		r.fail("honour", context.DeadlineExceeded)
		pass(5*time.Second + 1)
		require.Len(t, r.of("honour"), 11, "whatever becomes of them")
	})
}
