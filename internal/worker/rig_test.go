package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errPlain is the tasks' own fault.
var errPlain = errors.New("division by zero")

var thisLedger = bide.LedgerID{1}

// rig is a worker on a ledger in memory, in a synctest bubble.
type rig struct {
	*book
	*line
	*tally
	worker *Worker
	// stop ends the worker as SIGTERM does.
	stop func() error
}

// begin starts a worker that ends with the test. Without a line it has no
// broker.
func begin(t *testing.T, cfg Config, b *book, l *line) *rig {
	t.Helper()
	r := launch(cfg, b, l)
	t.Cleanup(func() { require.NoError(t, r.stop()) })
	return r
}

// company is how long a task waits for others, in every test.
const company = 3 * time.Millisecond

// launch starts a worker that the caller stops.
func launch(cfg Config, b *book, l *line) *rig {
	r := &rig{book: b, line: l, tally: newTally()}
	cfg.Ledger, cfg.BatchWait = thisLedger, company
	r.worker = New(cfg, b, b, nil, r.tally, slog.New(slog.DiscardHandler))
	if l != nil {
		r.worker = New(cfg, b, b, l, r.tally, slog.New(slog.DiscardHandler))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.worker.Run(ctx) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	synctest.Wait()
	return r
}

// due is a task with so long to go.
func due(id int64, in time.Duration) bide.Task {
	return bide.Task{ID: id, RunAt: time.Now().Add(in)}
}

// dues are n tasks, numbered from 1.
func dues(n int, in time.Duration) (tasks []bide.Task) {
	for id := range n {
		tasks = append(tasks, due(int64(id+1), in))
	}
	return tasks
}

// deliver delivers the message of a task, as it was when it was sent.
func (r *rig) deliver(tasks ...bide.Task) {
	for _, task := range tasks {
		r.hand(message(task).Body(), false)
	}
}

func message(task bide.Task) bide.Message {
	return bide.Message{Ledger: thisLedger, TaskID: task.ID, RunAt: task.RunAt, DeliverAt: task.RunAt.Add(-100 * time.Millisecond)}
}

// pass lets time pass, and what happens at its end happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// check holds a property in the time of a bubble, where rapid must not ask for
// the test's deadline.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { rapid.Check(struct{ testing.TB }{t}, property) })
}

// line is a subscriber whose deliveries the test makes.
type line struct {
	mu    sync.Mutex
	state bide.SessionState
	held  int
	acked chan struct{} // holds a token when an acknowledgement has come
	ready chan func(bide.Delivery)
	fatal chan error
	// patience bounds the drain.
	patience time.Duration
}

func newLine() *line {
	return &line{
		state: bide.SessionUp, acked: make(chan struct{}, 1),
		ready: make(chan func(bide.Delivery), 1), fatal: make(chan error, 1), patience: time.Minute,
	}
}

func (l *line) Session() bide.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bide.Session{State: l.state}
}

func (l *line) is(state bide.SessionState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state
}

// Subscribe implements bide.Subscriber.
func (l *line) Subscribe(ctx context.Context, handle func(bide.Delivery)) error {
	l.ready <- handle
	select {
	case err := <-l.fatal:
		return err
	case <-ctx.Done():
	}
	patience := time.After(l.patience)
	for l.unacked() > 0 {
		select {
		case <-l.acked:
		case <-patience:
			return nil
		}
	}
	return nil
}

func (l *line) hand(body []byte, redelivered bool) {
	handle := <-l.ready
	l.ready <- handle
	l.count(1)
	handle(bide.NewDelivery(body, redelivered, func() {
		l.count(-1)
		signal(l.acked)
	}))
}

func (l *line) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += n
}

func (l *line) unacked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// tally is what the worker reports.
type tally struct {
	mu     sync.Mutex
	events map[Event]int
	late   []time.Duration
	via    map[bide.Via]int
}

func newTally() *tally { return &tally{events: map[Event]int{}, via: map[bide.Via]int{}} }

func (c *tally) Finished(_ string, _ bide.Result, via bide.Via, late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.via[via]++
	c.late = append(c.late, late)
}

func (c *tally) Count(event Event, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events[event] += n
}

// counted returns how often an event happened.
func (c *tally) counted(event Event) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[event]
}

// finished returns how many tasks ended that came this way.
func (c *tally) finished(via bide.Via) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.via[via]
}
