package brokertest

import (
	"fmt"
	"sync"
	"time"

	"github.com/bide-mq/bide"
)

// Memory is a broker in memory. Its drivers pass the conformance suite, and
// its methods do to it what happens to brokers. All of it follows the time of
// a testing/synctest bubble.
type Memory struct {
	caps bide.Capabilities

	mu       sync.Mutex
	ledgers  map[bide.LedgerID]*shelf
	sessions map[chan struct{}]bide.LedgerID // closed when the session is cut
	down     bool
	blocked  string
	epoch    int // messages of an earlier one were purged
}

// shelf is what the broker keeps for one ledger.
type shelf struct {
	ready   []letter
	changed chan struct{} // closed, and made anew, when there is more
}

type letter struct {
	body        []byte
	redelivered bool
}

// NewMemory makes a broker with the capabilities given, a level per delay.
func NewMemory(caps bide.Capabilities) *Memory {
	return &Memory{
		caps:     caps,
		ledgers:  map[bide.LedgerID]*shelf{},
		sessions: map[chan struct{}]bide.LedgerID{},
	}
}

// Cut ends all sessions of the ledger's drivers. They start again at once.
func (m *Memory) Cut(ledger bide.LedgerID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for end, of := range m.sessions {
		if of == ledger {
			m.end(end)
		}
	}
}

// Stop ends all sessions, and none starts until Restart. What is stored stays.
func (m *Memory) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = true
	for end := range m.sessions {
		m.end(end)
	}
}

// Restart undoes Stop.
func (m *Memory) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = false
}

// Block makes sessions blocked for the reason given; "" unblocks them.
func (m *Memory) Block(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocked = reason
}

// Purge loses every message that is not with a consumer.
func (m *Memory) Purge() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	for _, s := range m.ledgers {
		s.ready = nil
	}
}

// Inject puts a body where the ledger's subscriber finds it.
func (m *Memory) Inject(ledger bide.LedgerID, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(ledger, letter{body: body})
}

// Waiting counts the messages that have arrived and have no consumer yet.
func (m *Memory) Waiting(ledger bide.LedgerID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.shelf(ledger).ready)
}

func (m *Memory) end(session chan struct{}) {
	delete(m.sessions, session)
	close(session)
}

// begin starts a session, or returns nil while the broker is down.
func (m *Memory) begin(ledger bide.LedgerID) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil
	}
	session := make(chan struct{})
	m.sessions[session] = ledger
	return session
}

// finish ends a session if nobody else has.
func (m *Memory) finish(session chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, living := m.sessions[session]; living {
		m.end(session)
	}
}

// state is what a session sees, nil standing for none.
func (m *Memory) state(session chan struct{}) bide.Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, living := m.sessions[session]; !living {
		return bide.Session{State: bide.SessionDown, Err: bide.ErrSessionDown}
	}
	if m.blocked != "" {
		return bide.Session{State: bide.SessionBlocked, Err: fmt.Errorf("%w: blocked: %s", bide.ErrSessionDown, m.blocked)}
	}
	return bide.Session{State: bide.SessionUp}
}

// accept takes a message in and delivers it after delay.
func (m *Memory) accept(ledger bide.LedgerID, body []byte, delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delay <= 0 {
		m.put(ledger, letter{body: body})
		return
	}
	epoch := m.epoch
	time.AfterFunc(delay, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if epoch == m.epoch {
			m.put(ledger, letter{body: body})
		}
	})
}

func (m *Memory) put(ledger bide.LedgerID, letters ...letter) {
	s := m.shelf(ledger)
	s.ready = append(s.ready, letters...)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (m *Memory) shelf(ledger bide.LedgerID) *shelf {
	s := m.ledgers[ledger]
	if s == nil {
		s = &shelf{changed: make(chan struct{})}
		m.ledgers[ledger] = s
	}
	return s
}

// take removes the oldest message, or returns what to wait for.
func (m *Memory) take(ledger bide.LedgerID) (letter, bool, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shelf(ledger)
	if len(s.ready) == 0 {
		return letter{}, false, s.changed
	}
	l := s.ready[0]
	s.ready = s.ready[1:]
	return l, true, nil
}

// giveBack returns unacknowledged messages to the front of the queue.
func (m *Memory) giveBack(ledger bide.LedgerID, letters []letter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shelf(ledger)
	rest := s.ready
	s.ready = nil
	for _, l := range letters {
		s.ready = append(s.ready, letter{body: l.body, redelivered: true})
	}
	s.ready = append(s.ready, rest...)
	close(s.changed)
	s.changed = make(chan struct{})
}
