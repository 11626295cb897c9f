package worker

import (
	"sync"
	"time"
)

// clock estimates the database's clock between its answers. An answer is older
// than its arrival, so the estimate errs on the late side: a task that it
// calls due is due.
type clock struct {
	mu      sync.Mutex
	samples [clockSamples]time.Duration // database minus local, newest anywhere
	next    int
	known   int
	base    time.Time // local, monotonic
}

// clockSamples is how many answers count. The best of them is the one that
// travelled fastest; a step of the database's clock is forgotten after as many.
const clockSamples = 16

func newClock() *clock { return &clock{base: time.Now()} }

// observe takes an answer in the moment it arrives.
func (c *clock) observe(database time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples[c.next] = database.Sub(c.base) - time.Since(c.base)
	c.next = (c.next + 1) % clockSamples
	c.known = min(c.known+1, clockSamples)
}

// now estimates the database's time.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var offset time.Duration
	for i := range c.known {
		if i == 0 || c.samples[i] > offset {
			offset = c.samples[i]
		}
	}
	return c.base.Add(time.Since(c.base) + offset)
}
