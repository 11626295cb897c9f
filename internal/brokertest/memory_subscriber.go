package brokertest

import (
	"context"
	"sync"
	"time"

	"github.com/bide-mq/bide"
)

// memoryConsumers is the number of goroutines that call the handler at once,
// so that a handler which is not safe for that fails under the race detector.
const memoryConsumers = 2

// MemorySubscriber is a [Memory]'s subscriber for one ledger.
type MemorySubscriber struct {
	// DrainTimeout bounds the wait for acknowledgements at the end.
	DrainTimeout time.Duration

	broker *Memory
	ledger bide.LedgerID
	line   line
}

var _ bide.Subscriber = (*MemorySubscriber)(nil)

// Subscriber returns a subscriber with a drain timeout of a second.
func (m *Memory) Subscriber(ledger bide.LedgerID) *MemorySubscriber {
	return &MemorySubscriber{DrainTimeout: time.Second, broker: m, ledger: ledger}
}

// Session implements [bide.Subscriber].
func (s *MemorySubscriber) Session() bide.Session { return s.line.state(s.broker) }

// Subscribe implements [bide.Subscriber].
func (s *MemorySubscriber) Subscribe(ctx context.Context, handle func(bide.Delivery)) error {
	s.line.keep(ctx, s.broker, s.ledger, func(session chan struct{}) {
		held := &holding{letters: map[int]letter{}, changed: make(chan struct{}, 1)}
		var consumers sync.WaitGroup
		for range memoryConsumers {
			consumers.Go(func() { s.consume(ctx, session, held, handle) })
		}
		consumers.Wait()
		held.drain(session, s.DrainTimeout)
		s.broker.finish(session)
		s.broker.giveBack(s.ledger, held.abandon())
	})
	return nil
}

func (s *MemorySubscriber) consume(ctx context.Context, session chan struct{}, held *holding, handle func(bide.Delivery)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-session:
			return
		default:
		}
		l, found, more := s.broker.take(s.ledger)
		if found {
			handle(bide.NewDelivery(l.body, l.redelivered, held.hold(l)))
			continue
		}
		select {
		case <-ctx.Done():
		case <-session:
		case <-more:
		}
	}
}

// holding is what a session has delivered and nobody has acknowledged.
type holding struct {
	mu      sync.Mutex
	letters map[int]letter
	last    int
	changed chan struct{} // holds a token when there is less
}

// hold returns the acknowledgement.
func (h *holding) hold(l letter) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	number := h.last
	h.letters[number] = l
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.letters, number)
		select {
		case h.changed <- struct{}{}:
		default:
		}
	}
}

// drain waits until nothing is held, the session has ended or time is up.
func (h *holding) drain(session chan struct{}, timeout time.Duration) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for h.count() > 0 {
		select {
		case <-h.changed:
		case <-session:
			return
		case <-timer.C:
			return
		}
	}
}

func (h *holding) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.letters)
}

// abandon returns what is held, in order, and makes later acknowledgements of
// it void.
func (h *holding) abandon() []letter {
	h.mu.Lock()
	defer h.mu.Unlock()
	var rest []letter
	for number := 1; number <= h.last; number++ {
		if l, held := h.letters[number]; held {
			rest = append(rest, l)
			delete(h.letters, number)
		}
	}
	return rest
}
