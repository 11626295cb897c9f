package worker

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/bide-mq/bide"
)

// item is a task in the worker's hands.
type item struct {
	id      int64
	bizType string
	// runAt is the ledger's time; at is when to try, later than runAt for a
	// task that is tried again.
	runAt, at time.Time
	// msgRunAt is the message's time, by which the task is given back.
	msgRunAt time.Time
	via      bide.Via
	// suspect: an earlier execution may have died of this task.
	suspect bool
	// recorded: the ledger knows that it is being tried as a suspect.
	recorded bool
	// contended counts the executions that gave way to another transaction.
	contended int
	// done says that nothing more is to be done: the message, if there is one,
	// is acknowledged.
	done func()
}

// hold keeps tasks until the database's clock shows their time.
type hold struct {
	clock *clock

	mu     sync.Mutex
	items  itemHeap
	wake   chan struct{} // holds a token when the first item has changed
	closed bool
}

func newHold(c *clock) *hold { return &hold{clock: c, wake: make(chan struct{}, 1)} }

// add keeps an item until its time. After close it returns false.
func (h *hold) add(it *item) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	heap.Push(&h.items, it)
	if h.items[0] == it {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// run passes each item on when its time has come, until ctx ends.
func (h *hold) run(ctx context.Context, release func(*item)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wait := h.take()
		for _, it := range due {
			release(it)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-h.wake:
		}
	}
}

// take removes what is due and tells how long to wait for the next.
func (h *hold) take() (due []*item, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.now()
	for len(h.items) > 0 && !h.items[0].at.After(now) {
		due = append(due, heap.Pop(&h.items).(*item))
	}
	if len(h.items) == 0 {
		return due, time.Hour
	}
	return due, max(h.items[0].at.Sub(now), 0)
}

// close refuses further items and returns the ones that were kept.
func (h *hold) close() []*item {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	kept := h.items
	h.items = nil
	return kept
}

// size is the number of items kept.
func (h *hold) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.items)
}

// itemHeap orders by the time to try.
type itemHeap []*item

func (h itemHeap) Len() int           { return len(h) }
func (h itemHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h itemHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *itemHeap) Push(x any)        { *h = append(*h, x.(*item)) }
func (h *itemHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
