package rabbit

import (
	"sync"

	"github.com/bide-mq/bide"
)

// job is the part of a batch that goes to one lane.
type job struct {
	batch *batch
	sends []int
}

// refuse settles sends that were never written.
func (j job) refuse(err error) {
	for _, i := range j.sends {
		j.batch.settle(i, bide.Outcome{Status: bide.Refused, Err: err})
	}
}

// jobs is a lane's queue. It has no bound, so that a level without room does
// not keep Publish from the others; callers wait for their outcomes instead.
type jobs struct {
	done <-chan struct{} // closed when the session has ended
	wake chan struct{}   // holds a token when there is more

	mu      sync.Mutex
	list    []job
	working bool // the last one popped is not done with
	closed  bool
}

func newJobs(done <-chan struct{}) *jobs {
	return &jobs{done: done, wake: make(chan struct{}, 1)}
}

// push appends a job, or returns false when none is taken any more.
func (q *jobs) push(j job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.list = append(q.list, j)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// pop waits for the next job. It returns false when the session has ended and
// the queue is empty, and from then on nothing can be pushed.
func (q *jobs) pop() (job, bool) {
	for {
		if j, found, closed := q.next(); found || closed {
			return j, found
		}
		select {
		case <-q.done:
		case <-q.wake:
		}
	}
}

func (q *jobs) next() (j job, found, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.working = len(q.list) > 0
	if q.working {
		j, q.list = q.list[0], q.list[1:]
		return j, true, false
	}
	select {
	case <-q.done:
		q.closed = true
	default:
	}
	return job{}, false, q.closed
}

// idle reports whether every job is done with.
func (q *jobs) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) == 0 && !q.working
}
