package relay

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
)

// Ledger is what the relay does to the ledger.
type Ledger interface {
	// Claim takes the tasks inside the windows as one journalled batch.
	Claim(ctx context.Context, windows []bide.Window) (bide.Batch, error)
	// Settle ends the batch and makes the tasks in back WAITING again.
	Settle(ctx context.Context, batchID int64, back []int64) error
	// Recover gives back the batches older than the lease.
	Recover(ctx context.Context, lease time.Duration) (int, error)
}

// Observer is told what happens. Its methods are called concurrently.
type Observer interface {
	// Claimed: tasks were taken from the ledger.
	Claimed(tasks int)
	// Published: messages at one level met this fate.
	Published(level int, status bide.Status, messages int)
	// Recovered: tasks of dead relays went back.
	Recovered(tasks int)
	// Quarantined: a level was closed or opened.
	Quarantined(level int, closed bool)
}

// Config tunes a relay. The zero value of a field stands for its default.
type Config struct {
	// Ledger is the ledger's identity, part of every message. Required.
	Ledger bide.LedgerID
	// Poll is the pause after a claim that was not full. At most half the
	// slack, or a fresh task may slip past its window. Defaults to 100 ms.
	Poll time.Duration
	// Lease is the age at which a batch's relay counts as dead. A publish
	// gives up after half of it. Defaults to 30 s.
	Lease time.Duration
	// ProbeEvery is the pause between two probes of a quarantined level.
	// Defaults to 1 s.
	ProbeEvery time.Duration
	// Drain bounds how long running batches may take to end after the stop.
	// Defaults to 8 s.
	Drain time.Duration
}

func (c Config) withDefaults() Config {
	c.Poll = cmp.Or(c.Poll, 100*time.Millisecond)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.ProbeEvery = cmp.Or(c.ProbeEvery, time.Second)
	c.Drain = cmp.Or(c.Drain, 8*time.Second)
	return c
}

// Relay is the loop. Make it with New.
type Relay struct {
	cfg       Config
	ledger    Ledger
	publisher bide.Publisher
	plan      levels.Plan
	gates     *gates
	observer  Observer
	log       *slog.Logger

	batches sync.WaitGroup
}

// New returns a relay that claims by the plan, which must have been made from
// the publisher's capabilities.
func New(cfg Config, ledger Ledger, publisher bide.Publisher, plan levels.Plan, observer Observer, log *slog.Logger) *Relay {
	return &Relay{
		cfg: cfg.withDefaults(), ledger: ledger, publisher: publisher, plan: plan,
		gates:    newGates(plan, publisher.Capabilities().Window, observer),
		observer: observer, log: log,
	}
}

// Run relays until ctx ends, then lets the batches in hand end. It returns nil.
func (r *Relay) Run(ctx context.Context) error {
	var loops errgroup.Group
	loops.Go(func() error { r.claimLoop(ctx); return nil })
	loops.Go(func() error { r.recoverLoop(ctx); return nil })
	loops.Go(func() error { r.probeLoop(ctx); return nil })
	return loops.Wait()
}

// claimLoop claims and starts batches. Batches outlive ctx by Drain.
func (r *Relay) claimLoop(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopDrain := context.AfterFunc(ctx, func() { time.AfterFunc(r.cfg.Drain, cancel) })
	defer stopDrain()
	defer r.batches.Wait()

	for ctx.Err() == nil {
		if again := r.claim(work); !again {
			r.gates.wait(ctx, r.cfg.Poll)
		}
	}
}

// claim takes one batch and reports whether there is likely more at once. A
// stop does not interrupt it: the server may have committed, and the batch
// would be left to recovery.
func (r *Relay) claim(ctx context.Context) (again bool) {
	if r.publisher.Session().State != bide.SessionUp {
		return false
	}
	windows := r.gates.windows()
	if len(windows) == 0 {
		return false
	}
	claimedAt := time.Now()
	batch, err := r.ledger.Claim(ctx, windows)
	if err != nil {
		if ctx.Err() == nil {
			r.log.WarnContext(ctx, "claim", "err", err)
		}
		return false
	}
	if batch.ID == 0 {
		return false
	}
	r.observer.Claimed(len(batch.Tasks))
	full := r.gates.enter(batch.Tasks, windows)
	r.batches.Go(func() { r.deliver(ctx, batch, claimedAt) })
	return full
}

// recoverLoop looks for batches of dead relays a few times per lease.
func (r *Relay) recoverLoop(ctx context.Context) {
	every(ctx, r.cfg.Lease/4, func() {
		n, err := r.ledger.Recover(ctx, r.cfg.Lease)
		if err != nil {
			if ctx.Err() == nil {
				r.log.WarnContext(ctx, "recover", "err", err)
			}
			return
		}
		if n > 0 {
			r.observer.Recovered(n)
			r.log.WarnContext(ctx, "gave back the tasks of a relay that died", "tasks", n)
		}
	})
}

// every calls f now and then each period until ctx ends.
func every(ctx context.Context, period time.Duration, f func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
