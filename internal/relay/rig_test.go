package relay

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	lead  = 100 * time.Millisecond
	slack = 250 * time.Millisecond
	poll  = 100 * time.Millisecond
)

// threeLevels are those of the tests: undelayed, 1 s and 10 s.
var threeLevels = bide.Capabilities{Delays: []time.Duration{time.Second, 10 * time.Second}, Lead: lead, Window: 256}

// rig is a relay between a ledger and a broker, in a synctest bubble.
type rig struct {
	*book
	*carrier
	*tally
	// stop ends the relay as SIGTERM does.
	stop func() error
}

// begin starts a relay that ends with the test.
func begin(t *testing.T, cfg Config, b *book, c *carrier) *rig {
	t.Helper()
	r := launch(t, cfg, b, c)
	t.Cleanup(func() { require.NoError(t, r.stop()) })
	return r
}

// launch starts a relay that the caller stops.
func launch(t require.TestingT, cfg Config, b *book, p bide.Publisher) *rig {
	plan, err := levels.NewPlan(p.Capabilities(), slack)
	require.NoError(t, err)
	r := &rig{book: b, tally: &tally{published: map[bide.Status]int{}, closed: map[int]bool{}}}
	r.carrier, _ = p.(*carrier)
	relay := New(cfg, b, p, plan, r.tally, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	synctest.Wait()
	return r
}

// pass lets time pass, and what happens at its end happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// row is a task in the ledger.
type row struct {
	runAt time.Time
	sent  bool
}

// book is a ledger in memory.
type book struct {
	// takes is how long the answer to a claim is on its way.
	takes time.Duration

	mu      sync.Mutex
	rows    map[int64]*row
	batches map[int64]journal
	last    int64
	// away holds, by call, what it fails with.
	away  map[string]error
	calls []call
}

type journal struct {
	tasks     []bide.Claimed
	claimedAt time.Time
}

type call struct {
	what    string
	windows []bide.Window
	at      time.Time
}

// newBook makes a ledger of n tasks, numbered from 1, with so long to go.
func newBook(n int, in time.Duration) *book {
	b := &book{rows: map[int64]*row{}, batches: map[int64]journal{}, away: map[string]error{}}
	for range n {
		b.add(in)
	}
	return b
}

func (b *book) add(in time.Duration) (id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id = int64(len(b.rows) + 1)
	b.rows[id] = &row{runAt: time.Now().Add(in)}
	return id
}

// fail makes calls fail, or go well again with nil.
func (b *book) fail(what string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away[what] = err
}

// enter notes a call. The caller holds the lock.
func (b *book) enter(ctx context.Context, what string, windows []bide.Window) error {
	b.calls = append(b.calls, call{what, windows, time.Now()})
	return errors.Join(b.away[what], ctx.Err())
}

// of lists the calls of a kind.
func (b *book) of(what string) (calls []call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		if c.what == what {
			calls = append(calls, c)
		}
	}
	return calls
}

// sent counts the tasks that are SENT.
func (b *book) sent() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.rows {
		if r.sent {
			n++
		}
	}
	return n
}

// journalled counts the batches in the journal.
func (b *book) journalled() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.batches)
}

func (b *book) Claim(ctx context.Context, windows []bide.Window) (bide.Batch, error) {
	batch, err := b.claim(ctx, windows)
	<-time.After(b.takes)
	return batch, err
}

func (b *book) claim(ctx context.Context, windows []bide.Window) (bide.Batch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := bide.Batch{Now: time.Now()}
	if err := b.enter(ctx, "claim", windows); err != nil {
		return batch, err
	}
	for _, w := range windows {
		n := 0
		for _, id := range slices.Sorted(maps.Keys(b.rows)) {
			r := b.rows[id]
			if left := r.runAt.Sub(batch.Now); !r.sent && left >= w.From && left < w.To && n < w.Limit {
				r.sent = true
				n++
				batch.Tasks = append(batch.Tasks, bide.Claimed{TaskID: id, RunAt: r.runAt, Level: w.Level})
			}
		}
	}
	if len(batch.Tasks) > 0 {
		b.last++
		batch.ID = b.last
		b.batches[batch.ID] = journal{batch.Tasks, batch.Now}
	}
	return batch, nil
}

func (b *book) Settle(ctx context.Context, batchID int64, back []int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter(ctx, "settle", nil); err != nil {
		return err
	}
	delete(b.batches, batchID)
	for _, id := range back {
		b.rows[id].sent = false
	}
	return nil
}

func (b *book) Recover(ctx context.Context, lease time.Duration) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter(ctx, "recover", nil); err != nil {
		return 0, err
	}
	for id, j := range b.batches {
		if time.Since(j.claimedAt) <= lease {
			continue
		}
		delete(b.batches, id)
		for _, t := range j.tasks {
			b.rows[t.TaskID].sent = false
			n++
		}
	}
	return n, nil
}

// carrier is a publisher whose answers the test chooses.
type carrier struct {
	caps bide.Capabilities
	// takes is how long a publish takes.
	takes time.Duration

	mu    sync.Mutex
	state bide.SessionState
	// fault says why a send is not confirmed; nil for none.
	fault          func(bide.Send) error
	sends          []sent
	inHand, atMost int
}

// sent is a send and when it was.
type sent struct {
	bide.Send
	at time.Time
}

func newCarrier() *carrier {
	return &carrier{caps: threeLevels, state: bide.SessionUp, fault: func(bide.Send) error { return nil }}
}

func (c *carrier) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *carrier) is(state bide.SessionState) { c.do(func() { c.state = state }) }

// faulty makes sends at one level fail; it goes well again with nil.
func (c *carrier) faulty(level int, err error) {
	c.do(func() {
		c.fault = func(s bide.Send) error {
			if s.Level == level {
				return err
			}
			return nil
		}
	})
}

// carried lists the sends of tasks, or of probes.
func (c *carrier) carried(probes bool) (list []sent) {
	c.do(func() {
		for _, s := range c.sends {
			if s.Message.Probe() == probes {
				list = append(list, s)
			}
		}
	})
	return list
}

func (c *carrier) Capabilities() bide.Capabilities { return c.caps }

func (c *carrier) Session() (s bide.Session) {
	c.do(func() { s.State = c.state })
	return s
}

func (c *carrier) Publish(ctx context.Context, sends []bide.Send) []bide.Outcome {
	c.do(func() {
		c.inHand += len(sends)
		c.atMost = max(c.atMost, c.inHand)
		for _, s := range sends {
			c.sends = append(c.sends, sent{s, time.Now()})
		}
	})
	select {
	case <-ctx.Done():
	case <-time.After(c.takes):
	}
	outcomes := make([]bide.Outcome, len(sends))
	c.do(func() {
		c.inHand -= len(sends)
		for i, s := range sends {
			outcomes[i] = outcome(errors.Join(ctx.Err(), c.fault(s)))
		}
	})
	return outcomes
}

func outcome(err error) bide.Outcome {
	switch {
	case err == nil:
		return bide.Outcome{Status: bide.Confirmed}
	case errors.Is(err, bide.ErrRefused), errors.Is(err, bide.ErrUnroutable):
		return bide.Outcome{Status: bide.Refused, Err: err}
	default:
		return bide.Outcome{Status: bide.Unknown, Err: err}
	}
}

// tally is what the relay reports.
type tally struct {
	mu                 sync.Mutex
	claimed, recovered int
	published          map[bide.Status]int
	closed             map[int]bool
}

func (t *tally) count(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

func (t *tally) Claimed(n int)   { t.count(func() { t.claimed += n }) }
func (t *tally) Recovered(n int) { t.count(func() { t.recovered += n }) }
func (t *tally) Published(_ int, status bide.Status, n int) {
	t.count(func() { t.published[status] += n })
}
func (t *tally) Quarantined(level int, closed bool) { t.count(func() { t.closed[level] = closed }) }

// quarantined reports whether a level is said to be closed.
func (t *tally) quarantined(level int) (is bool) {
	t.count(func() { is = t.closed[level] })
	return is
}
