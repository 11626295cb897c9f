package rabbit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/bide-mq/bide"
)

// batch gathers the outcomes of one Publish call. Lanes report into it for as
// long as the caller waits; what they report later is dropped.
type batch struct {
	mu       sync.Mutex
	sends    []bide.Send
	outcomes []bide.Outcome
	stage    []stage
	left     int
	left0    chan struct{} // closed when left reaches 0
	over     bool
}

// stage is how far a send has come.
type stage uint8

const (
	queued stage = iota
	written
	settled
)

func newBatch(sends []bide.Send) *batch {
	return &batch{
		sends: sends, outcomes: make([]bide.Outcome, len(sends)), stage: make([]stage, len(sends)),
		left: len(sends), left0: make(chan struct{}),
	}
}

// begin marks send i as written, or says that nobody wants it any more.
func (b *batch) begin(i int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.stage[i] != queued {
		return false
	}
	b.stage[i] = written
	return true
}

// settle records what became of send i. The first outcome stays.
func (b *batch) settle(i int, o bide.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.stage[i] == settled {
		return
	}
	b.stage[i], b.outcomes[i] = settled, o
	if b.left--; b.left == 0 {
		close(b.left0)
	}
}

// wait returns the outcomes when all are known or ctx ends. What was not
// written by then never will be, so it counts as refused.
func (b *batch) wait(ctx context.Context) []bide.Outcome {
	select {
	case <-b.left0:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	err := fmt.Errorf("publish: %w", context.Cause(ctx))
	for i, s := range b.stage {
		switch s {
		case queued:
			b.outcomes[i] = bide.Outcome{Status: bide.Refused, Err: err}
		case written:
			b.outcomes[i] = bide.Outcome{Status: bide.Unknown, Err: err}
		case settled:
		}
	}
	return slices.Clone(b.outcomes)
}
