package worker

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// lane gathers the due tasks of one type into batches.
type lane struct {
	batch int
	// slots is this type's share of the executions: a slow type must leave
	// room for others, and one type's transactions want the same rows.
	slots *semaphore.Weighted

	mu     sync.Mutex
	items  []*item
	closed bool
	wake   chan struct{} // holds a token when items may be waiting
	full   chan struct{} // holds a token when a batch is complete
}

func newLane(batch, slots int) *lane {
	return &lane{
		batch: batch, slots: semaphore.NewWeighted(int64(slots)),
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1),
	}
}

// add puts a due item into the lane. After close it returns false.
func (l *lane) add(it *item) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.items = append(l.items, it)
	l.announce()
	return true
}

// announce tells run what there is. A token that no longer holds is taken
// back: it would cut the next batch's wait short. The caller holds the lock.
func (l *lane) announce() {
	show(l.wake, len(l.items) > 0)
	show(l.full, len(l.items) >= l.batch)
}

func show(c chan struct{}, is bool) {
	if is {
		signal(c)
		return
	}
	select {
	case <-c:
	default:
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run starts a batch whenever one is complete, or wait after the first item
// came, until ctx ends. start blocks while all executions are busy, so that
// batches grow with the load.
func (l *lane) run(ctx context.Context, wait time.Duration, start func([]*item)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-l.full:
		case <-timer.C:
		}
		if batch := l.take(); len(batch) > 0 {
			start(batch)
		}
	}
}

// take removes up to a batch of items that came the same way.
func (l *lane) take() []*item {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.items) && n < l.batch && l.items[n].via == l.items[0].via {
		n++
	}
	batch := l.items[:n:n]
	l.items = l.items[n:]
	l.announce()
	return batch
}

// close refuses further items and returns the ones that waited.
func (l *lane) close() []*item {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	waiting := l.items
	l.items = nil
	return waiting
}
