package rabbit

import (
	"sync"
	"time"
)

// tally counts deliveries that are not acknowledged.
type tally struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed while n is 0
	last time.Time     // of the last acknowledgement
}

func newTally() *tally {
	t := &tally{zero: make(chan struct{})}
	close(t.zero)
	return t
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n++; t.n == 1 {
		t.zero = make(chan struct{})
	}
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	if t.n--; t.n == 0 {
		close(t.zero)
	}
}

// sinceLast is how long ago the last acknowledgement was.
func (t *tally) sinceLast() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.last)
}

// settled returns a channel that is closed when everything counted so far is
// acknowledged.
func (t *tally) settled() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.zero
}
