package rabbit

import "sync"

// tally counts deliveries that are not acknowledged.
type tally struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed while n is 0
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
	if t.n--; t.n == 0 {
		close(t.zero)
	}
}

// settled returns a channel that is closed when everything counted so far is
// acknowledged.
func (t *tally) settled() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.zero
}
