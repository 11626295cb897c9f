package worker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// steps are calls in words.
func steps(calls []call) (steps []string) {
	for _, c := range calls {
		steps = append(steps, c.what)
	}
	return steps
}

// An execution that dies without a word makes suspects of its tasks. Each is
// recorded, then tried alone, and no two at once.
func TestSuspectsAreRecordedAndTriedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := dues(3, 0)
		b := newBook(tasks...)
		b.takes = 20 * time.Millisecond
		b.fault = func(ids []int64) error {
			if len(ids) > 1 {
				return ErrLost
			}
			return nil
		}
		r := begin(t, Config{}, b, newLine())
		r.deliver(tasks...)
		pass(time.Second)
		trials := r.of("execute", "reclaim", "try")
		require.Equal(t, []string{"execute", "reclaim", "try", "reclaim", "try", "reclaim", "try"}, steps(trials))
		for i := 1; i < len(trials); i += 2 {
			require.Equal(t, trials[i].ids, trials[i+1].ids, "the same task is recorded and tried")
		}
		require.Equal(t, []int64{20, 20}, pauses(r.of("try")))
		require.Equal(t, 3, r.counted(Suspected))
		require.Equal(t, 3, r.finished(bide.ViaBroker))
		require.Zero(t, r.unacked())
	})
}

func TestATaskThatKillsEachTimeIsGivenUpAndItsNeighboursGoFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := dues(10, 0)
		b := newBook(tasks...)
		b.fault = func(ids []int64) error {
			if slices.Contains(ids, 7) {
				return ErrLost
			}
			return nil
		}
		r := begin(t, Config{}, b, newLine())
		r.deliver(tasks...)
		pass(5 * time.Second)
		require.Equal(t, 9, r.finished(bide.ViaBroker))
		require.Len(t, r.left(), 1)
		require.Equal(t, bide.Failed, r.left()[0].State)
		require.Equal(t, 1, r.counted(GivenUp))
		require.Len(t, r.of("reclaim"), 9+b.mostReclaims)
		require.Zero(t, r.unacked())
	})
}

// A trial that meets a locked order did not die: it is not recorded again.
func TestALockedSuspectIsRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := due(1, 0)
		task.Reclaims = 1
		b := newBook(task)
		b.orders[1] = true
		r := begin(t, Config{Grace: time.Hour}, b, newLine())
		r.deliver(task)
		pass(950 * time.Millisecond)
		require.Len(t, r.of("reclaim"), 1)
		require.Len(t, r.of("try"), 10)
		r.set(b.orders, false, 1)
		pass(time.Second)
		require.Empty(t, r.left())
	})
}

// The broker says which messages a worker had that went away. What was not due
// then has not been executed.
func TestRedeliveryCastsSuspicionOnWhatWasDue(t *testing.T) {
	for in, want := range map[time.Duration][]string{
		0:                      {"reclaim", "try"},
		100 * time.Millisecond: {"execute"},
	} {
		synctest.Test(t, func(t *testing.T) {
			task := due(1, in)
			r := begin(t, Config{}, newBook(task), newLine())
			r.hand(message(task).Body(), true)
			pass(time.Second)
			require.Equal(t, want, steps(r.of("execute", "reclaim", "try")))
		})
	}
}

// The ledger's journal knows suspects that no mark tells of.
func TestASuspectThatAnExecutionFindsIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := dues(3, 50*time.Millisecond)
		b := newBook(tasks...)
		r := begin(t, Config{}, b, newLine())
		r.deliver(tasks...)
		synctest.Wait()
		r.do(func() { b.tasks[2].Reclaims = 1 })
		pass(time.Second)
		require.Equal(t, []string{"execute", "reclaim", "try"}, steps(r.of("execute", "reclaim", "try")))
		require.Empty(t, r.left())
	})
}

func TestASuspectIsNotTriedUnlessThatIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := due(1, 0)
		task.Reclaims = 1
		b := newBook(task)
		r := begin(t, Config{Grace: time.Hour}, b, newLine())
		r.fail("reclaim", ErrUnavailable)
		r.deliver(task)
		pass(time.Second)
		require.Empty(t, r.of("try"))
		require.Zero(t, r.counted(Suspected))
		r.fail("reclaim", nil)
		r.set(b.rows, true, 1) // cannot be tried now, as soon after another trial
		pass(time.Second)
		require.Empty(t, r.of("try"))
		require.Zero(t, r.counted(Suspected))
		r.set(b.rows, false, 1)
		pass(time.Second)
		require.Empty(t, r.left())
		require.Equal(t, 1, r.counted(Suspected))
	})
}

func TestASuspectThatTheSweepListsIsTriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := waiting(due(1, 0))
		tasks[0].Reclaims = 1
		b := newBook(tasks...)
		b.types = map[string]int{"close": 1}
		r := begin(t, Config{}, b, nil)
		pass(time.Second)
		require.Equal(t, []string{"reclaim", "try"}, steps(r.of("execute", "reclaim", "try")))
	})
}
