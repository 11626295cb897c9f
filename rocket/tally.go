package rocket

import "sync"

// tally counts the batches that are with the handler.
type tally struct {
	mu     sync.Mutex
	n      int
	closed bool
	empty  chan struct{} // closed when it is closed and nothing is left
}

func newTally() *tally { return &tally{empty: make(chan struct{})} }

// enter counts a batch in. After close it returns false.
func (t *tally) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.n++
	return true
}

func (t *tally) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.closed && t.n == 0 {
		close(t.empty)
	}
}

// close lets no batch in any more and returns a channel that is closed when all
// have left.
func (t *tally) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		if t.n == 0 {
			close(t.empty)
		}
	}
	return t.empty
}
