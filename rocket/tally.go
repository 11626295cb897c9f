package rocket

import (
	"sync"
	"time"
)

// tally counts the batches that are with the handler.
type tally struct {
	mu      sync.Mutex
	n       int
	closed  bool
	changed chan struct{} // closed, and made anew, at each change
}

func newTally() *tally { return &tally{changed: make(chan struct{})} }

// enter counts a batch in. After close it returns false.
func (t *tally) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.change(1)
	return true
}

func (t *tally) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.change(-1)
}

func (t *tally) change(by int) {
	t.n += by
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *tally) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// quiet returns a channel that is closed when there has been no batch for d.
// After that no batch enters.
func (t *tally) quiet(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for !t.closeIfQuiet(d) {
		}
		close(done)
	}()
	return done
}

// closeIfQuiet waits for the next change, or for d without one, and closes the
// tally when there was no batch meanwhile.
func (t *tally) closeIfQuiet(d time.Duration) bool {
	t.mu.Lock()
	n, changed := t.n, t.changed
	t.mu.Unlock()
	if n > 0 {
		<-changed
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
		return false
	case <-timer.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = t.n == 0
	return t.closed
}
