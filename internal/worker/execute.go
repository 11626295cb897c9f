package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/bide-mq/bide"
)

const (
	// busyPause is how soon a task is tried again whose order, or whose own
	// row, somebody else holds.
	busyPause = 100 * time.Millisecond
	// mostContended is how often a task alone may give way before that counts
	// as a failed attempt. The pauses between double from busyPause.
	mostContended = 4
	// unavailablePause is how soon tasks are tried again after the database
	// could not serve.
	unavailablePause = 250 * time.Millisecond
)

// start executes a batch of one lane once there is room for it.
func (w *Worker) start(ctx context.Context, l *lane, items []*item) {
	room := []*semaphore.Weighted{l.slots, w.slots}
	for i, slots := range room {
		if slots.Acquire(ctx, 1) != nil { // stopped hard; the messages stay with the broker
			release(room[:i])
			return
		}
	}
	w.jobs.Go(func() {
		defer release(room)
		if items[0].suspect {
			w.try(ctx, items[0])
			return
		}
		w.execute(ctx, items, Mode{Via: items[0].via})
	})
}

func release(room []*semaphore.Weighted) {
	for _, slots := range room {
		slots.Release(1)
	}
}

// try runs a suspect alone, after its trial has been recorded. The record
// holds until the execution dies: one that merely met a locked order is not
// recorded again.
func (w *Worker) try(ctx context.Context, it *item) {
	if it.recorded {
		w.execute(ctx, []*item{it}, Mode{Via: it.via, Trial: true})
		return
	}
	ended, ok, err := w.executor.Reclaim(ctx, it.id)
	switch {
	case err != nil:
		w.log.WarnContext(ctx, "record a trial", "task_id", it.id, "err", err)
		w.keepUntil(ctx, []*item{it}, unavailablePause)
	case !ok:
		w.lookUp(ctx, []*item{it})
	case ended.State == bide.Failed:
		w.ended(ctx, []bide.Ended{ended})
		it.done()
	default:
		it.recorded = true
		w.observer.Count(Suspected, 1)
		w.execute(ctx, []*item{it}, Mode{Via: it.via, Trial: true})
	}
}

// execute runs items of one type in one transaction and, where that fails,
// halves of them.
func (w *Worker) execute(ctx context.Context, items []*item, mode Mode) {
	ids, byID := index(items)
	report, err := w.executor.Execute(ctx, ids, mode)
	if err != nil {
		w.failed(ctx, items, ids, err, mode)
		return
	}
	w.settle(ctx, report, byID, mode.Via)
	var missing []*item
	for _, group := range byID {
		missing = append(missing, group...)
	}
	w.lookUp(ctx, missing)
}

// index lists the tasks, each once, and their items: copies of a message make
// several items of one task.
func index(items []*item) (ids []int64, byID map[int64][]*item) {
	byID = make(map[int64][]*item, len(items))
	for _, it := range items {
		if byID[it.id] == nil {
			ids = append(ids, it.id)
		}
		byID[it.id] = append(byID[it.id], it)
	}
	return ids, byID
}

// settle acts on a report. It takes what it has dealt with out of byID.
func (w *Worker) settle(ctx context.Context, report Report, byID map[int64][]*item, via bide.Via) {
	w.clock.observe(report.Now)
	take := func(t bide.Task) []*item {
		items := byID[t.ID]
		delete(byID, t.ID)
		if items == nil {
			items = w.sweptItem(t)
		}
		return items
	}
	now := w.clock.now()
	for _, f := range report.Finished {
		w.observer.Finished(f.Task.BizType, f.Result, via, now.Sub(f.Task.RunAt))
		acknowledge(take(f.Task))
	}
	for _, b := range report.Busy {
		w.observer.Count(Busy, 1)
		w.keepUntil(ctx, take(b), busyPause)
	}
	for _, t := range report.Overdue {
		w.keepUntil(ctx, take(t), 0)
	}
	for _, s := range report.Suspects {
		items := take(s)
		for _, it := range items {
			it.suspect = true
		}
		w.keepUntil(ctx, items, 0)
	}
	w.retry(ctx, report.Failed, func(t bide.Task) { acknowledge(take(t)) })
}

func acknowledge(items []*item) {
	for _, it := range items {
		it.done()
	}
}

// keepUntil holds items that are due but cannot be finished now.
func (w *Worker) keepUntil(ctx context.Context, items []*item, pause time.Duration) {
	at := w.clock.now().Add(pause)
	for _, it := range items {
		it.at = at
		w.keep(ctx, it)
	}
}

// failed deals with an execution that was rolled back, or may have been.
func (w *Worker) failed(ctx context.Context, items []*item, ids []int64, err error, mode Mode) {
	switch {
	case errors.Is(err, ErrUnavailable):
		if ctx.Err() == nil {
			w.log.WarnContext(ctx, "execute", "tasks", len(ids), "err", err)
		}
		w.keepUntil(ctx, items, unavailablePause)
	case errors.Is(err, ErrLost):
		w.log.WarnContext(ctx, "execute: the tasks will be tried one by one", "tasks", len(ids), "err", err)
		for _, it := range items {
			it.suspect, it.recorded = true, false
		}
		w.keepUntil(ctx, items, busyPause)
	case len(ids) == 1 && errors.Is(err, ErrContended) && items[0].contended < mostContended:
		w.observer.Count(Busy, 1)
		items[0].contended++
		w.keepUntil(ctx, items, busyPause<<items[0].contended)
	case len(ids) == 1:
		task := bide.Task{ID: ids[0], BizType: items[0].bizType}
		w.retry(ctx, []Failure{{Task: task, Reason: err.Error()}}, func(bide.Task) { acknowledge(items) })
	default:
		w.log.DebugContext(ctx, "execute: halving the batch", "tasks", len(ids), "err", err)
		half := len(ids) / 2
		isFirst := func(it *item) bool { return slices.Contains(ids[:half], it.id) }
		w.execute(ctx, slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return !isFirst(it) }), mode)
		w.execute(ctx, slices.DeleteFunc(items, isFirst), mode)
	}
}

// retry puts failed tasks off or gives them up. A task that the ledger could
// not be told about is the sweep's: it finds it as overdue as it was.
func (w *Worker) retry(ctx context.Context, failures []Failure, done func(bide.Task)) {
	if len(failures) == 0 {
		return
	}
	ended, err := w.executor.Retry(ctx, failures)
	if err != nil {
		w.log.WarnContext(ctx, "put off failed tasks", "tasks", len(failures), "err", err)
	}
	w.ended(ctx, ended)
	for _, f := range failures {
		done(f.Task)
	}
}

// ended reports tasks that failed. FAILED is the alarm.
func (w *Worker) ended(ctx context.Context, ended []bide.Ended) {
	for _, e := range ended {
		attrs := []any{"task_id", e.ID, "biz_type", e.BizType, "biz_id", e.BizID, "attempts", e.Attempts, "err", e.LastError}
		if e.State == bide.Failed {
			w.observer.Count(GivenUp, 1)
			w.log.ErrorContext(ctx, "task FAILED: it will not be tried again until it is requeued", attrs...)
			continue
		}
		w.observer.Count(Retried, 1)
		w.log.WarnContext(ctx, "task failed and will be tried again", attrs...)
	}
}

// lookUp decides about tasks that an execution could not lock.
func (w *Worker) lookUp(ctx context.Context, items []*item) {
	if len(items) == 0 {
		return
	}
	ids, byID := index(items)
	tasks, now, err := w.ledger.Peek(ctx, ids)
	if err != nil {
		w.keepUntil(ctx, items, unavailablePause)
		return
	}
	w.clock.observe(now)
	for _, t := range tasks {
		executable := t.State == bide.Waiting || t.State == bide.Sent
		switch remaining := t.RunAt.Sub(now); {
		case executable && remaining <= 0: // held by another transaction
			w.observer.Count(Busy, 1)
			w.keepUntil(ctx, byID[t.ID], busyPause)
		case executable && t.RunAt.Equal(byID[t.ID][0].runAt): // our clock was ahead
			w.keepUntil(ctx, byID[t.ID], remaining)
		default: // rescheduled, leased or given up
			continue
		}
		delete(byID, t.ID)
	}
	for _, group := range byID {
		w.observer.Count(Stale, len(group))
		acknowledge(group)
	}
}
