package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide"
)

// Whatever the database's clock shows, a held task is executed when it is due
// by that clock, and never before.
func TestNothingIsExecutedBeforeItsTime(t *testing.T) {
	check(t, func(rt *rapid.T) {
		b, l := newBook(), newLine()
		b.skew = time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(rt, "skew")) * time.Microsecond
		r := launch(Config{}, b, l)
		defer func() { _ = r.stop() }()
		n := rapid.IntRange(1, 20).Draw(rt, "tasks")
		for id := range int64(n) {
			task := due(id+1, b.skew+time.Duration(rapid.IntRange(0, 2_000_000).Draw(rt, "in"))*time.Microsecond)
			b.add(task)
			r.deliver(task)
			pass(time.Duration(rapid.IntRange(0, 100).Draw(rt, "pause")) * time.Millisecond)
		}
		pass(3 * time.Second)
		require.NoError(rt, r.stop())
		require.Equal(rt, n, r.finished(bide.ViaBroker))
		for _, late := range r.late {
			require.GreaterOrEqual(rt, late, time.Duration(0))
			require.LessOrEqual(rt, late, 3*time.Millisecond, "no more than the wait for company")
		}
		require.Zero(rt, r.unacked())
	})
}

func TestMessagesThatAreNothingToDo(t *testing.T) {
	hour := time.Hour
	for name, tt := range map[string]struct {
		task  func(bide.Task) bide.Task       // the ledger's
		forge func(bide.Message) bide.Message // of its message
		event Event
	}{
		"another ledger's":   {nil, func(m bide.Message) bide.Message { m.Ledger[0]++; return m }, Foreign},
		"a probe":            {nil, func(m bide.Message) bide.Message { m.TaskID = 0; return m }, ""},
		"of no task":         {nil, func(m bide.Message) bide.Message { m.TaskID = 99; return m }, Stale},
		"rescheduled":        {func(t bide.Task) bide.Task { t.RunAt = t.RunAt.Add(hour); return t }, nil, Stale},
		"leased":             {func(t bide.Task) bide.Task { t.State = bide.Running; return t }, nil, Stale},
		"given up":           {func(t bide.Task) bide.Task { t.State = bide.Failed; return t }, nil, Stale},
		"without a handler":  {func(t bide.Task) bide.Task { t.BizType = "remind"; return t }, nil, Unhandled},
		"more than 2 s away": {func(t bide.Task) bide.Task { return due(t.ID, hour) }, func(m bide.Message) bide.Message { m.RunAt = m.RunAt.Add(hour); return m }, Early},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				task := due(1, 0)
				m := message(task)
				if tt.task != nil {
					task = tt.task(task)
				}
				if tt.forge != nil {
					m = tt.forge(m)
				}
				r := begin(t, Config{}, newBook(task), newLine())
				r.hand(m.Body(), false)
				synctest.Wait()
				require.Zero(t, r.unacked())
				require.Empty(t, r.of("execute", "try"))
				require.Equal(t, 1, r.counted(Arrived))
				if tt.event != "" {
					require.Equal(t, 1, r.counted(tt.event))
				}
			})
		})
	}
}

func TestGarbageIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{}, newBook(), newLine())
		for _, body := range []string{"", "bide1", "\x00\xff", string(make([]byte, 1<<20))} {
			r.hand([]byte(body), false)
		}
		require.Zero(t, r.unacked())
		require.Equal(t, 4, r.counted(Garbage))
		require.Empty(t, r.of("peek"), "the ledger is not asked")
	})
}

// A message speaks for a task that is due, whichever time it names.
func TestAStaleMessageOfADueTaskWillDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{}, newBook(due(1, 0)), newLine())
		r.deliver(due(1, time.Hour))
		pass(10 * time.Millisecond)
		require.Equal(t, 1, r.finished(bide.ViaBroker))
	})
}

// What is early through nobody's fault, for example after another worker has
// stopped, goes back to be sent again, however often.
func TestAnEarlyTaskGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := due(1, 10*time.Second)
		task.Sends = 7
		r := begin(t, Config{}, newBook(task), newLine())
		m := message(task)
		m.DeliverAt = time.Now().Add(faultMargin)
		r.hand(m.Body(), false)
		synctest.Wait()
		require.Equal(t, bide.Waiting, r.left()[0].State)
		require.Equal(t, 1, r.counted(Early))
		require.Zero(t, r.counted(BrokerFault))
	})
}

// A message whose task could not be given back would take a place in the
// prefetch for as long as the session lives.
func TestAnEarlyTaskGoesBackWhenTheLedgerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{}, newBook(due(1, time.Minute)), newLine())
		r.fail("give back", errPlain)
		r.deliver(r.left()...)
		pass(time.Second)
		require.Equal(t, 1, r.unacked())
		require.Equal(t, bide.Sent, r.left()[0].State)
		r.fail("give back", nil)
		pass(time.Second)
		require.Zero(t, r.unacked())
		require.Equal(t, bide.Waiting, r.left()[0].State)
	})
}

func TestABrokerThatIgnoresDelaysIsNotFedForEver(t *testing.T) {
	for sends, state := range map[int]bide.State{1: bide.Waiting, 2: bide.Waiting, 3: bide.Sent, 4: bide.Sent} {
		synctest.Test(t, func(t *testing.T) {
			task := due(1, 10*time.Second)
			task.Sends = sends
			r := begin(t, Config{}, newBook(task), newLine())
			r.deliver(task)
			synctest.Wait()
			require.Equal(t, 1, r.counted(BrokerFault))
			require.Equal(t, state, r.left()[0].State, "after %d sends", sends)
			require.Zero(t, r.unacked())
			pass(14 * time.Second)
			require.Equal(t, 1, r.finished(bide.ViaSweep), "the sweep has it in any case")
		})
	}
}

func TestArrivalsWaitForTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{}, newBook(due(1, 0)), newLine())
		for _, what := range []string{"peek", "execute", "sweep"} {
			r.fail(what, ErrUnavailable)
		}
		r.deliver(due(1, 0))
		pass(time.Minute)
		require.Equal(t, 1, r.unacked(), "it stays in hand")
		require.InDelta(t, 600, len(r.of("peek")), 5, "one look in 100 ms")
		for _, what := range []string{"peek", "execute", "sweep"} {
			r.fail(what, nil)
		}
		pass(200 * time.Millisecond)
		require.Empty(t, r.left())
	})
}

// One look-up is under way at a time, and takes all that has gathered.
func TestArrivalsShareLookUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := dues(1200, time.Second)
		b := newBook(tasks...)
		b.peekTakes = 5 * time.Millisecond
		r := begin(t, Config{}, b, newLine())
		r.deliver(tasks...)
		pass(100 * time.Millisecond)
		require.Equal(t, 1200, r.worker.Held())
		require.LessOrEqual(t, len(r.of("peek")), 5)
	})
}
