package worker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// waiting are tasks in the ledger for which no message is on its way.
func waiting(tasks ...bide.Task) []bide.Task {
	for i := range tasks {
		tasks[i].State = bide.Waiting
	}
	return tasks
}

func TestMarksFollowWhatWasLeft(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(1e15)
	old := now.Add(-time.Hour)
	last := now.Add(-time.Minute)
	due := bide.Due{Grace: 3 * time.Second, Limit: 100, WaitingFrom: old, SentFrom: old}
	found := []bide.Task{{State: bide.Waiting, RunAt: last}, {State: bide.Sent, RunAt: last}, {State: bide.Sent, RunAt: old}}
	for name, tt := range map[string]struct {
		report            Report
		full              bool // as many in hand as may be
		waiting, sent     time.Time
		more, hot, wasHot bool
	}{
		"nothing left":             {report: Report{Waiting: 7, Sent: 7}, waiting: now, sent: now.Add(-due.Grace)},
		"more waiting":             {report: Report{Waiting: 100, Busy: found}, waiting: last, sent: now.Add(-due.Grace), more: true},
		"more sent":                {report: Report{Sent: 100, Overdue: found}, waiting: now, sent: last, more: true, hot: true},
		"more, but no room":        {report: Report{Waiting: 100, Busy: found}, full: true, waiting: old, sent: now.Add(-due.Grace)},
		"the same once more":       {report: Report{Waiting: 100, Sent: 100}, waiting: old, sent: old, hot: true},
		"many lost":                {report: Report{Sent: manySent}, waiting: now, sent: now.Add(-due.Grace), hot: true},
		"many lost, and still one": {report: Report{Sent: 1}, waiting: now, sent: now.Add(-due.Grace), wasHot: true, hot: true},
		"many lost, and no more":   {report: Report{}, waiting: now, sent: now.Add(-due.Grace), wasHot: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scan{waitingFrom: old, sentFrom: old, hot: tt.wasHot}
			tt.report.Now = now
			require.Equal(t, tt.more, s.learn(due, false, !tt.full, tt.report))
			require.Equal(t, tt.waiting, s.waitingFrom)
			require.Equal(t, tt.sent, s.sentFrom)
			require.Equal(t, tt.hot, s.hot)
		})
	}
}

func TestFullScansComeByTheirCost(t *testing.T) {
	for took, after := range map[time.Duration]time.Duration{
		time.Millisecond: time.Second, 80 * time.Millisecond: 1600 * time.Millisecond, time.Minute: 2500 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := scan{types: []string{"close"}}
			due, full := s.next(0, 100)
			require.True(t, full, "the first is")
			require.Zero(t, due.WaitingFrom)
			s.learn(due, full, true, Report{Now: time.Now(), Scan: took})
			pass(after - time.Millisecond)
			due, full = s.next(0, 100)
			require.False(t, full)
			require.NotZero(t, due.WaitingFrom)
			require.NotZero(t, due.SentFrom)
			pass(time.Millisecond)
			_, full = s.next(0, 100)
			require.True(t, full)
		})
	}
}

// The grace follows what is known of the broker. A session that has not been
// up yet, but will be, is given the usual grace: redeliveries come first.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const usual = 3 * time.Second
		l := newLine()
		l.is(bide.SessionDown)
		w := New(Config{}, newBook(), newBook(), l, newTally(), nil)
		w.begun = time.Now()
		require.Equal(t, usual, w.grace(false), "not up yet")
		pass(usual + 1)
		require.Zero(t, w.grace(false), "not up for so long")
		l.is(bide.SessionUp)
		require.Equal(t, usual, w.grace(false))
		require.Equal(t, hotGrace, w.grace(true))
		l.is(bide.SessionBlocked)
		require.Equal(t, usual, w.grace(false), "deliveries go on")
		l.is(bide.SessionDown)
		require.Zero(t, w.grace(true))
		require.Zero(t, New(Config{}, newBook(), newBook(), nil, newTally(), nil).grace(false), "no broker")
	})
}

func TestWithoutABrokerTheSweepIsTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := waiting(dues(1200, 330*time.Millisecond)...)
		tasks = append(tasks, due(9999, 330*time.Millisecond)) // SENT, when there was one
		r := begin(t, Config{}, newBook(tasks...), nil)
		pass(329 * time.Millisecond)
		require.Zero(t, r.finished(bide.ViaSweep))
		pass(51 * time.Millisecond)
		require.Equal(t, 1201, r.finished(bide.ViaSweep), "scans follow each other while there is more")
	})
}

func TestTypesThatRunAloneAreListedAndTakenInHandOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(waiting(dues(4, 0)...)...)
		b.types = map[string]int{"close": 1}
		b.takes = time.Second
		r := begin(t, Config{}, b, nil)
		pass(2500 * time.Millisecond)
		require.Empty(t, r.of("sweep"))
		require.Greater(t, len(r.of("overdue")), 20, "they are found again and again")
		require.LessOrEqual(t, len(r.of("execute")), 4+4, "a scan may end when an execution does")
		require.Equal(t, 4, r.finished(bide.ViaSweep))
	})
}

func TestALostMessageCostsTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{}, newBook(due(1, 0)), newLine())
		pass(3*time.Second - time.Millisecond)
		require.Len(t, r.left(), 1)
		pass(101 * time.Millisecond)
		require.Equal(t, 1, r.finished(bide.ViaSweep))
	})
}

func TestMissingMessagesMakeTheSweepHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks []bide.Task
		for id := range int64(1000) { // 200 a second, all of whose messages are lost
			tasks = append(tasks, due(id+1, time.Duration(id)*5*time.Millisecond))
		}
		r := begin(t, Config{}, newBook(tasks...), newLine())
		pass(6 * time.Second)
		require.Equal(t, 1000, r.finished(bide.ViaSweep))
		require.GreaterOrEqual(t, r.late[0], 3*time.Second)
		require.LessOrEqual(t, r.late[999], hotGrace+100*time.Millisecond)
	})
}

func TestASessionThatIsDownCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{}, newBook(due(1, time.Second)), newLine())
		r.is(bide.SessionDown)
		pass(1101 * time.Millisecond)
		require.Equal(t, 1, r.finished(bide.ViaSweep))
	})
}

// A late commit, a cancel rolled back: a row appears behind the mark.
func TestWhatAppearsBehindTheMarkIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{}, newBook(), newLine())
		pass(10 * time.Second)
		r.add(waiting(due(1, -time.Minute))...)
		pass(fullScanLeast + 100*time.Millisecond)
		require.Empty(t, r.left())
	})
}

// A scan's batch that fails is halved like any other, while the scans go on
// without locking it again.
func TestPoisonInAScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(waiting(dues(100, 0)...)...)
		b.takes = 10 * time.Millisecond
		b.fault = func(ids []int64) error {
			if slices.Contains(ids, 42) {
				return errPlain
			}
			return nil
		}
		r := begin(t, Config{}, b, nil)
		pass(500 * time.Millisecond)
		require.Equal(t, 99, r.finished(bide.ViaSweep))
		require.Equal(t, 1, r.counted(Retried))
		require.LessOrEqual(t, len(r.of("execute")), 1+2*7)
		r.add(waiting(due(101, 0))...)
		pass(100 * time.Millisecond)
		require.Equal(t, 100, r.finished(bide.ViaSweep))
		require.Equal(t, "sweep", r.of("sweep", "overdue")[len(r.of("sweep", "overdue"))-1].what, "business as usual")
	})
}

func TestAScanThatFailsIsRepeated(t *testing.T) {
	for name, err := range map[string]error{"unavailable": ErrUnavailable, "lost": ErrLost} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBook(waiting(dues(5, time.Second)...)...)
				b.fault = func([]int64) error { return err }
				r := begin(t, Config{}, b, nil)
				pass(1100 * time.Millisecond)
				require.Empty(t, r.of("execute", "retry"), "whose fault it was is not known")
				r.faulty(sound)
				pass(100 * time.Millisecond)
				require.Empty(t, r.left())
			})
		})
	}
}

// Orders that somebody holds for long do not keep the rest waiting, however
// many they are.
func TestManyLockedOrdersDoNotHoldUpTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks []bide.Task
		b := newBook()
		for id := range int64(600) {
			tasks = append(tasks, due(id+1, time.Duration(id)*time.Microsecond))
			b.orders[id+1] = true
		}
		b.add(waiting(tasks...)...)
		b.add(waiting(due(601, time.Second))...)
		b.takes = time.Millisecond
		r := begin(t, Config{}, b, nil)
		pass(1100 * time.Millisecond)
		require.Equal(t, 1, r.finished(bide.ViaSweep))
		require.Less(t, len(r.of("sweep")), 100, "and the scans keep their pace")
	})
}
