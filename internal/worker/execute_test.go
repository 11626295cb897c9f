package worker

import (
	"math/bits"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide"
)

// sizes lists how many tasks each of the calls was about.
func sizes(calls []call) (sizes []int) {
	for _, c := range calls {
		sizes = append(sizes, len(c.ids))
	}
	return sizes
}

// pauses lists the time between calls, in milliseconds.
func pauses(calls []call) (pauses []int64) {
	for i := range calls[1:] {
		pauses = append(pauses, calls[i+1].at.Sub(calls[i].at).Milliseconds())
	}
	return pauses
}

func TestDueTasksShareTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := dues(450, 200*time.Millisecond)
		b := newBook(tasks...)
		b.takes = 10 * time.Millisecond
		r := begin(t, Config{}, b, newLine())
		r.deliver(tasks...)
		pass(time.Second)
		require.ElementsMatch(t, []int{200, 200, 50}, sizes(r.of("execute")))
		require.Zero(t, r.unacked())
	})
}

func TestCopiesOfAMessageAreOneExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{}, newBook(due(1, 100*time.Millisecond)), newLine())
		r.deliver(due(1, 100*time.Millisecond), due(1, 100*time.Millisecond), due(1, 100*time.Millisecond))
		pass(time.Second)
		require.Equal(t, []int{1}, sizes(r.of("execute")))
		require.Zero(t, r.unacked())
		require.Zero(t, r.counted(Stale))
	})
}

// Whichever task is poison, its neighbours are finished, and it is found in
// two executions for each halving.
func TestHalvingIsolatesPoison(t *testing.T) {
	check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(rt, "tasks")
		poison := int64(rapid.IntRange(1, n).Draw(rt, "poison"))
		tasks := dues(n, 0)
		b := newBook(tasks...)
		b.fault = func(ids []int64) error {
			if slices.Contains(ids, poison) {
				return errPlain
			}
			return nil
		}
		r := launch(Config{}, b, newLine())
		defer func() { _ = r.stop() }()
		r.deliver(tasks...)
		pass(10 * time.Millisecond)
		require.Equal(rt, n-1, r.finished(bide.ViaBroker))
		require.LessOrEqual(rt, len(r.of("execute")), 1+2*bits.Len(uint(n-1)))
		left := r.left()
		require.Len(rt, left, 1)
		require.Equal(rt, poison, left[0].ID)
		require.Equal(rt, 1, left[0].Attempts)
		require.Zero(rt, r.unacked())
	})
}

func TestPoisonIsRetriedAndThenGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(due(1, 0))
		b.fault = func([]int64) error { return errPlain }
		r := begin(t, Config{}, b, newLine())
		r.deliver(due(1, 0))
		pass(10 * time.Second)
		require.Equal(t, bide.Failed, r.left()[0].State)
		require.Equal(t, 2, r.counted(Retried))
		require.Equal(t, 1, r.counted(GivenUp))
	})
}

func TestAHandlerMayAskForAnotherAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := dues(3, 0)
		b := newBook(tasks...)
		b.wanting[2] = true
		r := begin(t, Config{}, b, newLine())
		r.deliver(tasks...)
		pass(10 * time.Millisecond)
		require.Equal(t, []int{3}, sizes(r.of("execute")), "it fails nobody else")
		require.Equal(t, 1, r.counted(Retried))
		require.Zero(t, r.unacked())
	})
}

// A task whose failure could not be recorded is SENT and overdue: the sweep's.
func TestAFailureThatIsNotRecordedIsMetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(due(1, 0))
		b.wanting[1] = true
		r := begin(t, Config{}, b, newLine())
		r.fail("retry", ErrUnavailable)
		r.deliver(due(1, 0))
		pass(10 * time.Millisecond)
		require.Zero(t, r.unacked())
		r.fail("retry", nil)
		r.set(b.wanting, false, 1)
		pass(4 * time.Second)
		require.Equal(t, 1, r.finished(bide.ViaSweep))
	})
}

// Order or row: whoever holds it, the task is tried every 100 ms, which counts
// as no failure, and the others of its batch go on.
func TestALockedTaskIsTriedUntilItIsFree(t *testing.T) {
	for name, held := range map[string]func(*book) map[int64]bool{
		"order": func(b *book) map[int64]bool { return b.orders },
		"row":   func(b *book) map[int64]bool { return b.rows },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tasks := dues(5, 0)
				b := newBook(tasks...)
				held(b)[3] = true
				r := begin(t, Config{}, b, newLine())
				r.deliver(tasks...)
				pass(350 * time.Millisecond)
				require.Equal(t, 4, r.finished(bide.ViaBroker))
				require.Equal(t, 1, r.unacked())
				r.set(held(b), false, 3)
				pass(100 * time.Millisecond)
				require.Zero(t, r.unacked())
				require.Equal(t, []int64{103, 103, 103, 103}, pauses(r.of("execute")), "and 3 ms for company")
				require.Equal(t, 4, r.counted(Busy))
				require.Empty(t, r.of("retry"))
			})
		})
	}
}

// The database's clock was set back after it was asked.
func TestATaskThatProvesNotToBeDueIsHeldOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(due(1, 200*time.Millisecond))
		r := begin(t, Config{}, b, newLine())
		r.deliver(due(1, 200*time.Millisecond))
		synctest.Wait()
		r.do(func() { b.skew = -500 * time.Millisecond })
		pass(650 * time.Millisecond)
		require.Len(t, r.left(), 1)
		pass(100 * time.Millisecond)
		require.Empty(t, r.left())
		require.Equal(t, 1, r.finished(bide.ViaBroker))
		require.Empty(t, r.of("retry"))
	})
}

func TestATaskThatGivesWayAgainAndAgainCountsAsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(due(1, 0))
		b.fault = func([]int64) error { return ErrContended }
		r := begin(t, Config{Grace: time.Minute}, b, newLine())
		r.deliver(due(1, 0))
		pass(3500 * time.Millisecond)
		require.Equal(t, []int64{203, 403, 803, 1603}, pauses(r.of("execute")))
		require.Equal(t, mostContended, r.counted(Busy))
		require.Equal(t, 1, r.counted(Retried))
		require.Zero(t, r.unacked())
	})
}

func TestTasksStayInHandWhileTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := dues(50, 0)
		b := newBook(tasks...)
		r := begin(t, Config{Grace: time.Hour}, b, newLine())
		r.fail("execute", ErrUnavailable)
		r.deliver(tasks...)
		pass(time.Minute)
		require.Equal(t, 50, r.unacked())
		require.InDelta(t, 240, len(r.of("execute")), 10, "one attempt in 250 ms, all tasks together")
		r.fail("execute", nil)
		pass(300 * time.Millisecond)
		require.Equal(t, 50, r.finished(bide.ViaBroker))
		require.Empty(t, r.of("retry", "reclaim"), "nobody is to blame")
	})
}

// A look-up that fails after an execution keeps the task in hand, too.
func TestAnAnswerThatIsMissingIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(due(1, 0))
		r := begin(t, Config{}, b, newLine())
		r.deliver(due(1, 0))
		r.set(b.rows, true, 1)
		synctest.Wait() // peeked at
		r.fail("peek", ErrUnavailable)
		pass(time.Second)
		require.Equal(t, 1, r.unacked())
		r.fail("peek", nil)
		r.set(b.rows, false, 1)
		pass(time.Second)
		require.Empty(t, r.left())
	})
}

func TestASlowTypeLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := dues(10, 0)
		b := newBook()
		b.types = map[string]int{"slow": 1, "close": 200}
		for i := range slow {
			slow[i].BizType = "slow"
		}
		b.add(slow...)
		b.add(due(99, 0))
		b.takes = time.Second
		r := begin(t, Config{Executions: 4}, b, newLine())
		r.deliver(slow...)
		pass(500 * time.Millisecond)
		require.Len(t, r.of("execute"), 2, "half of the executions")
		r.deliver(due(99, 0))
		pass(10 * time.Millisecond)
		require.Equal(t, []int64{99}, r.of("execute")[2].ids)
	})
}
