package worker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bide-mq/bide"
)

// book is a ledger in memory and the executor of its tasks. It lives in a
// synctest bubble, whose time, shifted by skew, is the database's.
type book struct {
	types map[string]int
	// takes is how long an execution takes, peekTakes a look-up.
	takes, peekTakes time.Duration
	// mostAttempts and mostReclaims are when a task is given up.
	mostAttempts, mostReclaims int

	mu    sync.Mutex
	skew  time.Duration
	tasks map[int64]*bide.Task
	// rows are task rows that another transaction holds, orders the orders of
	// tasks, wanting the tasks whose handler asks for another attempt.
	rows, orders, wanting map[int64]bool
	// away holds, by call, what it fails with.
	away map[string]error
	// fault decides what an execution of these tasks fails with; nil for none.
	fault func(ids []int64) error
	calls []call
}

// call is one of the worker's, in order.
type call struct {
	what string
	ids  []int64
	due  bide.Due
	at   time.Time // the database's
}

func sound([]int64) error { return nil }

func newBook(tasks ...bide.Task) *book {
	b := &book{
		types: map[string]int{"close": 200}, fault: sound, mostAttempts: 3, mostReclaims: 3,
		tasks: map[int64]*bide.Task{}, rows: map[int64]bool{}, orders: map[int64]bool{}, wanting: map[int64]bool{},
		away: map[string]error{},
	}
	b.add(tasks...)
	return b
}

// add stores tasks. What they do not say is a SENT task of the type close.
func (b *book) add(tasks ...bide.Task) {
	b.do(func() {
		for _, t := range tasks {
			t.BizType, t.State = cmp.Or(t.BizType, "close"), cmp.Or(t.State, bide.Sent)
			b.tasks[t.ID] = &t
		}
	})
}

func (b *book) do(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *book) set(m map[int64]bool, value bool, ids ...int64) {
	b.do(func() {
		for _, id := range ids {
			m[id] = value
		}
	})
}

// fail makes calls fail, or go well again with nil.
func (b *book) fail(what string, err error) { b.do(func() { b.away[what] = err }) }

// faulty makes executions fail.
func (b *book) faulty(fault func(ids []int64) error) { b.do(func() { b.fault = fault }) }

// now is the database's clock. The caller holds the lock.
func (b *book) now() time.Time { return time.Now().Add(b.skew) }

// enter notes a call and returns the database's clock, or what the call fails
// with. The caller holds the lock.
func (b *book) enter(what string, due bide.Due, ids ...int64) (time.Time, error) {
	b.calls = append(b.calls, call{what: what, ids: slices.Clone(ids), due: due, at: b.now()})
	return b.now(), b.away[what]
}

// of lists the calls of some kinds.
func (b *book) of(kinds ...string) (calls []call) {
	b.do(func() {
		for _, c := range b.calls {
			if slices.Contains(kinds, c.what) {
				calls = append(calls, c)
			}
		}
	})
	return calls
}

// left returns the live tasks, by id.
func (b *book) left() (tasks []bide.Task) {
	b.do(func() {
		for _, id := range slices.Sorted(maps.Keys(b.tasks)) {
			tasks = append(tasks, *b.tasks[id])
		}
	})
	return tasks
}

func (b *book) Peek(_ context.Context, ids []int64) (tasks []bide.Task, now time.Time, err error) {
	<-time.After(b.peekTakes)
	b.mu.Lock()
	defer b.mu.Unlock()
	now, err = b.enter("peek", bide.Due{}, ids...)
	for _, id := range ids {
		if t := b.tasks[id]; t != nil && err == nil {
			tasks = append(tasks, *t)
		}
	}
	return tasks, now, err
}

func (b *book) GiveBack(ctx context.Context, ids []int64, runAts []time.Time) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.enter("give back", bide.Due{}, ids...); err != nil || ctx.Err() != nil {
		return 0, errors.Join(err, ctx.Err())
	}
	for i, id := range ids {
		if t := b.tasks[id]; t != nil && t.State == bide.Sent && t.RunAt.Equal(runAts[i]) {
			t.State = bide.Waiting
			n++
		}
	}
	return n, nil
}

func (b *book) HonourRequests(context.Context) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := b.enter("honour", bide.Due{})
	return 0, err
}

func (b *book) Types() map[string]int { return b.types }

func (b *book) Execute(ctx context.Context, ids []int64, mode Mode) (Report, error) {
	what := "execute"
	if mode.Trial {
		what = "try"
	}
	var report Report
	var err error
	b.do(func() { report.Now, err = b.enter(what, bide.Due{}, ids...) })
	if err == nil {
		err = b.work(ctx, ids)
	}
	if err != nil {
		return Report{}, err
	}
	b.do(func() {
		for _, id := range ids {
			if t := b.tasks[id]; t != nil && b.executable(t) && !t.RunAt.After(report.Now) {
				b.run(&report, t, mode.Trial)
			}
		}
	})
	return report, nil
}

// work takes its time, then fails or does not.
func (b *book) work(ctx context.Context, ids []int64) error {
	select {
	case <-ctx.Done():
		return errors.Join(ErrUnavailable, ctx.Err())
	case <-time.After(b.takes):
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.fault(ids)
	}
}

func (b *book) executable(t *bide.Task) bool {
	return (t.State == bide.Waiting || t.State == bide.Sent) && !b.rows[t.ID]
}

// run files one task under what becomes of it.
func (b *book) run(report *Report, t *bide.Task, trial bool) {
	switch {
	case t.Reclaims > 0 && !trial:
		report.Suspects = append(report.Suspects, *t)
	case b.orders[t.ID]:
		report.Busy = append(report.Busy, *t)
	case b.wanting[t.ID]:
		report.Failed = append(report.Failed, Failure{Task: *t, Reason: "asked for"})
	default:
		report.Finished = append(report.Finished, Finished{Task: *t, Result: bide.Done})
		delete(b.tasks, t.ID)
	}
}

func (b *book) Sweep(ctx context.Context, due bide.Due) (Report, error) {
	report, found, err := b.find("sweep", due)
	if err != nil || len(found) == 0 {
		return report, err
	}
	ids := make([]int64, len(found))
	for i, t := range found {
		ids[i] = t.ID
	}
	if err := b.work(ctx, ids); err != nil {
		return Report{}, &FailedBatch{Tasks: found, Err: err}
	}
	b.do(func() {
		for _, id := range ids {
			if t := b.tasks[id]; t != nil {
				b.run(&report, t, false)
			}
		}
	})
	return report, nil
}

func (b *book) Overdue(_ context.Context, due bide.Due) (Report, error) {
	report, found, err := b.find("overdue", due)
	report.Overdue = found
	return report, err
}

// find looks for overdue tasks as the ledger does.
func (b *book) find(what string, due bide.Due) (report Report, found []bide.Task, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if report.Now, err = b.enter(what, due); err != nil {
		return Report{}, nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(b.tasks)) {
		t := b.tasks[id]
		from, until, n := due.WaitingFrom, report.Now, &report.Waiting
		if t.State == bide.Sent {
			from, until, n = due.SentFrom, report.Now.Add(-due.Grace), &report.Sent
		}
		if b.executable(t) && slices.Contains(due.Types, t.BizType) && !t.RunAt.Before(from) && !t.RunAt.After(until) && *n < due.Limit {
			*n++
			found = append(found, *t)
		}
	}
	return report, found, nil
}

func (b *book) Retry(_ context.Context, failures []Failure) (ended []bide.Ended, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range failures {
		now, err := b.enter("retry", bide.Due{}, f.Task.ID)
		if err != nil {
			return nil, err
		}
		t := b.tasks[f.Task.ID]
		if t == nil || !b.executable(t) || t.RunAt.After(now) {
			continue // a copy of it was quicker
		}
		t.Attempts++
		t.State, t.RunAt = bide.Waiting, now.Add(time.Second)
		if t.Attempts == b.mostAttempts {
			t.State = bide.Failed
		}
		ended = append(ended, bide.Ended{ID: t.ID, State: t.State, Attempts: t.Attempts, LastError: f.Reason})
	}
	return ended, nil
}

func (b *book) Reclaim(_ context.Context, id int64) (bide.Ended, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := b.enter("reclaim", bide.Due{}, id)
	t := b.tasks[id]
	if err != nil || t == nil || !b.executable(t) {
		return bide.Ended{}, false, err
	}
	if t.Reclaims++; t.Reclaims == b.mostReclaims {
		t.State = bide.Failed
	}
	return bide.Ended{ID: id, State: t.State}, true, nil
}
