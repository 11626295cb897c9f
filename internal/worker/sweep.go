package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bide-mq/bide"
)

const (
	// manySent is the number of overdue SENT tasks in one scan that says the
	// broker is losing messages.
	manySent = 10
	// hotGrace replaces the grace while the scans keep finding many. More
	// than a message in good health needs, so that it ends when health does
	// return.
	hotGrace = 250 * time.Millisecond
	// A full scan follows the last one after fullScanShare times the time
	// that one took, so that full scans take no more than one part in twenty
	// of the time, but after fullScanLeast at the least and fullScanMost at
	// the most: what lies behind the mark must not wait for long because a
	// busy machine was slow once.
	fullScanLeast = time.Second
	fullScanMost  = 2500 * time.Millisecond
	fullScanShare = 20
	// mostSwept is how many tasks the sweep takes in hand before it waits for
	// some of them. Tasks whose orders are locked are in hand for as long.
	mostSwept = 10_000
)

// scan is the sweep's memory of one group of types.
type scan struct {
	types                 []string
	waitingFrom, sentFrom time.Time
	fullAt                time.Time // local
	fullTook              time.Duration
	hot                   bool
	// careful: a batch has failed, and its tasks are being tried in halves. The
	// scans keep from locking them all again meanwhile.
	careful bool
}

// next says what to look for: from the marks on, or everything when that is
// due again.
func (s *scan) next(grace time.Duration, limit int) (due bide.Due, full bool) {
	due = bide.Due{Types: s.types, Grace: grace, Limit: limit}
	if time.Since(s.fullAt) >= min(max(fullScanLeast, fullScanShare*s.fullTook), fullScanMost) {
		return due, true
	}
	due.WaitingFrom, due.SentFrom = s.waitingFrom, s.sentFrom
	return due, false
}

// learn moves the marks up to where nothing is left, and reports whether there
// is likely more to find at once. A scan that found as many as it may ask for
// leaves nothing before the last of them: they are finished, or in hand. With
// too many in hand, when there is no room, it is to find the same again.
func (s *scan) learn(due bide.Due, full, room bool, report Report) (more bool) {
	if full {
		s.fullAt, s.fullTook = time.Now(), report.Scan
	}
	s.hot = report.Sent >= manySent || s.hot && report.Sent > 0
	advance := func(mark *time.Time, found int, state bide.State, from, end time.Time) {
		if found < due.Limit {
			*mark = end
			return
		}
		more = more || len(report.Finished) > 0
		if last := report.last(state); room && last.After(from) {
			*mark, more = last, true
		}
	}
	advance(&s.waitingFrom, report.Waiting, bide.Waiting, due.WaitingFrom, report.Now)
	advance(&s.sentFrom, report.Sent, bide.Sent, due.SentFrom, report.Now.Add(-due.Grace))
	return more
}

// sweepLoop scans for overdue tasks until ctx ends. Executions outlive ctx.
func (w *Worker) sweepLoop(ctx, work context.Context) {
	w.begun = time.Now()
	var shared, alone scan
	for bizType, batch := range w.executor.Types() {
		if batch > 1 {
			shared.types = append(shared.types, bizType)
		} else {
			alone.types = append(alone.types, bizType)
		}
	}
	tick := time.NewTicker(w.cfg.SweepEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		more := w.sweep(work, &shared, w.executor.Sweep)
		w.sweep(work, &alone, w.executor.Overdue)
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// grace is how long a SENT task may be overdue now.
func (w *Worker) grace(hot bool) time.Duration {
	switch {
	case w.subscriber == nil, w.brokerDown():
		return 0
	case hot:
		return hotGrace
	default:
		return w.cfg.Grace
	}
}

// brokerDown reports whether the session is known to be down. One that has not
// been up yet is given the grace: what a worker that died had in hand is about
// to be delivered again, with a mark of suspicion that the sweep does not see.
func (w *Worker) brokerDown() bool {
	down := w.subscriber.Session().State == bide.SessionDown
	w.wasUp = w.wasUp || !down
	return down && (w.wasUp || time.Since(w.begun) > w.cfg.Grace)
}

// sweep runs one scan and reports whether there is likely more to find at once.
func (w *Worker) sweep(ctx context.Context, s *scan, find func(context.Context, bide.Due) (Report, error)) (more bool) {
	if len(s.types) == 0 {
		return false
	}
	due, full := s.next(w.grace(s.hot), w.cfg.SweepLimit)
	if s.careful = s.careful && w.swept.size() > 0; s.careful {
		find = w.executor.Overdue
	}
	report, err := find(ctx, due)
	if err != nil {
		s.careful = w.sweepFailed(ctx, err)
		return false
	}
	w.settle(ctx, report, map[int64][]*item{}, bide.ViaSweep)
	return s.learn(due, full, w.swept.size() < mostSwept, report)
}

// sweepFailed passes the tasks of a failed scan on to their lanes, where a
// batch that fails is halved, and reports whether it did. When it was not their
// fault, the next scan finds them again.
func (w *Worker) sweepFailed(ctx context.Context, err error) (passed bool) {
	var batch *FailedBatch
	if !errors.As(err, &batch) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrLost) {
		if ctx.Err() == nil {
			w.log.WarnContext(ctx, "sweep", "err", err)
		}
		return false
	}
	for _, t := range batch.Tasks {
		w.keepUntil(ctx, w.sweptItem(t), 0)
	}
	return true
}

// sweptSet remembers the tasks that the sweep has taken in hand, so that the
// next scan does not take them again.
type sweptSet struct {
	mu  sync.Mutex
	ids map[int64]bool
}

func newSweptSet() *sweptSet { return &sweptSet{ids: map[int64]bool{}} }

// add reports whether the task was not there yet.
func (s *sweptSet) add(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] {
		return false
	}
	s.ids[id] = true
	return true
}

func (s *sweptSet) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids)
}

func (s *sweptSet) remove(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, id)
}

// sweptItem takes a task in hand that no message speaks for; none when it is
// in hand already.
func (w *Worker) sweptItem(t bide.Task) []*item {
	if !w.swept.add(t.ID) {
		return nil
	}
	return []*item{{
		id: t.ID, bizType: t.BizType, runAt: t.RunAt, at: t.RunAt, msgRunAt: t.RunAt, via: bide.ViaSweep,
		suspect: t.Reclaims > 0, done: func() { w.swept.remove(t.ID) },
	}}
}
