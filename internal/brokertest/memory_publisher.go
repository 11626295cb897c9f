package brokertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bide-mq/bide"
)

// reconnectPause is how long a driver of a [Memory] stays away after its
// session has ended.
const reconnectPause = time.Millisecond

// MemoryPublisher is a [Memory]'s publisher for one ledger.
type MemoryPublisher struct {
	broker *Memory
	ledger bide.LedgerID
	line   line
}

var _ Publisher = (*MemoryPublisher)(nil)

// Publisher returns a publisher, to be run.
func (m *Memory) Publisher(ledger bide.LedgerID) *MemoryPublisher {
	return &MemoryPublisher{broker: m, ledger: ledger}
}

// Run keeps a session until ctx ends.
func (p *MemoryPublisher) Run(ctx context.Context) error {
	p.line.keep(ctx, p.broker, p.ledger, func(session chan struct{}) {
		select {
		case <-ctx.Done():
		case <-session:
		}
	})
	return nil
}

// Capabilities are those of the broker.
func (p *MemoryPublisher) Capabilities() bide.Capabilities {
	caps := p.broker.caps
	caps.Delays = slices.Clone(caps.Delays)
	return caps
}

// Session implements [bide.Publisher].
func (p *MemoryPublisher) Session() bide.Session { return p.line.state(p.broker) }

// Publish confirms what it can at once.
func (p *MemoryPublisher) Publish(ctx context.Context, sends []bide.Send) []bide.Outcome {
	outcomes := make([]bide.Outcome, len(sends))
	for i, s := range sends {
		if err := p.publish(ctx, s); err != nil {
			outcomes[i] = bide.Outcome{Status: bide.Refused, Err: err}
			continue
		}
		outcomes[i].Status = bide.Confirmed
	}
	return outcomes
}

func (p *MemoryPublisher) publish(ctx context.Context, s bide.Send) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if session := p.Session(); session.State != bide.SessionUp {
		return fmt.Errorf("publish: %w", bide.ErrSessionDown)
	}
	delay, err := p.broker.delay(s)
	if err != nil {
		return err
	}
	p.broker.accept(p.ledger, s.Message.Body(), delay)
	return nil
}

// delay is how long the broker keeps the message.
func (m *Memory) delay(s bide.Send) (time.Duration, error) {
	switch {
	case s.Level == bide.LevelNone:
		return 0, nil
	case s.Level == bide.LevelTimer && m.caps.Timers:
		return time.Until(s.Message.DeliverAt), nil
	case s.Level > 0 && s.Level <= len(m.caps.Delays):
		return m.caps.Delays[s.Level-1], nil
	default:
		return 0, fmt.Errorf("level %d: the broker has no such level", s.Level)
	}
}

// line is a driver's connection, which comes back after a while.
type line struct {
	mu      sync.Mutex
	tried   bool
	session chan struct{}
}

// keep calls use with one session after the other until ctx ends.
func (l *line) keep(ctx context.Context, broker *Memory, ledger bide.LedgerID, use func(session chan struct{})) {
	for ctx.Err() == nil {
		session := broker.begin(ledger)
		l.set(session)
		if session != nil {
			use(session)
			broker.finish(session)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectPause):
		}
	}
	l.set(nil)
}

func (l *line) set(session chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried, l.session = true, session
}

func (l *line) state(broker *Memory) bide.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.tried {
		return bide.Session{}
	}
	return broker.state(l.session)
}
