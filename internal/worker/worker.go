package worker

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/bide-mq/bide"
)

// Config tunes a worker. The zero value of a field stands for its default.
type Config struct {
	// Ledger is the ledger's identity; other ledgers' messages are refused.
	// Required.
	Ledger bide.LedgerID
	// Executions is how many transactions run at once, half of them at most
	// for one type. Defaults to 4.
	Executions int
	// BatchWait is how long a due task waits for company. Defaults to 2 ms.
	BatchWait time.Duration
	// SweepEvery is the pause between two scans that found little. Defaults
	// to 100 ms, 50 ms without a broker.
	SweepEvery time.Duration
	// SweepLimit is the most tasks of one scan. Defaults to 500.
	SweepLimit int
	// Grace is how long a sent task may be overdue before the sweep takes it.
	// Defaults to 3 s.
	Grace time.Duration
	// Drain bounds how long running executions may take to end after the
	// stop. Defaults to 8 s.
	Drain time.Duration
}

func (c Config) withDefaults(broker bool) Config {
	c.Executions = cmp.Or(c.Executions, 4)
	c.SweepLimit = cmp.Or(c.SweepLimit, 500)
	sweepEvery := 100 * time.Millisecond
	if !broker {
		sweepEvery = 50 * time.Millisecond
	}
	c.SweepEvery = cmp.Or(c.SweepEvery, sweepEvery)
	c.BatchWait = cmp.Or(c.BatchWait, 2*time.Millisecond)
	c.Grace = cmp.Or(c.Grace, 3*time.Second)
	c.Drain = cmp.Or(c.Drain, 8*time.Second)
	return c
}

// Worker is the loop. Make it with New.
type Worker struct {
	cfg        Config
	ledger     Ledger
	executor   Executor
	subscriber bide.Subscriber // nil without a broker
	observer   Observer
	log        *slog.Logger

	clock *clock
	inbox *inbox
	hold  *hold
	swept *sweptSet
	lanes map[string]*lane
	slots *semaphore.Weighted
	// suspects is the lane of tasks that may have killed a worker. It tries
	// one at a time: of two, the one that kills would cast the other as guilty
	// again. Being a lane of its own, it keeps nobody else waiting.
	suspects *lane
	jobs     sync.WaitGroup

	// The sweep loop's: when it began, and whether the broker session has been
	// up since.
	begun time.Time
	wasUp bool
}

// New returns a worker. Without a subscriber the sweep is the engine.
func New(cfg Config, ledger Ledger, executor Executor, subscriber bide.Subscriber, observer Observer, log *slog.Logger) *Worker {
	cfg = cfg.withDefaults(subscriber != nil)
	w := &Worker{
		cfg: cfg, ledger: ledger, executor: executor, subscriber: subscriber,
		observer: observer, log: log,
		clock: newClock(), inbox: newInbox(), swept: newSweptSet(), lanes: map[string]*lane{},
		slots:    semaphore.NewWeighted(int64(cfg.Executions)),
		suspects: newLane(1, 1),
	}
	w.hold = newHold(w.clock)
	types := executor.Types()
	for bizType, batch := range types {
		w.lanes[bizType] = newLane(batch, max(cfg.Executions/2, 1))
	}
	return w
}

// Held is the number of tasks waiting in memory for their time.
func (w *Worker) Held() int { return w.hold.size() }

// Run works until ctx ends, then drains. It returns the subscriber's error, if
// any.
func (w *Worker) Run(ctx context.Context) error {
	work, cancelWork := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelWork()

	loops, ctx := errgroup.WithContext(ctx)
	stopDrain := context.AfterFunc(ctx, func() { time.AfterFunc(w.cfg.Drain, cancelWork) })
	defer stopDrain()
	if w.subscriber != nil {
		loops.Go(func() error {
			defer w.inbox.close()
			return w.subscriber.Subscribe(ctx, w.arrive)
		})
	} else {
		loops.Go(func() error { <-ctx.Done(); w.inbox.close(); return nil })
	}
	loops.Go(func() error { w.sweepLoop(ctx, work); return nil })
	loops.Go(func() error { w.honourLoop(ctx); return nil })
	loops.Go(func() error { w.hold.run(ctx, func(it *item) { w.due(work, it) }); return nil })
	for _, l := range w.allLanes() {
		loops.Go(func() error { l.run(ctx, w.cfg.BatchWait, func(b []*item) { w.start(work, l, b) }); return nil })
	}
	loops.Go(func() error { w.peekLoop(work); return nil })
	loops.Go(func() error {
		<-ctx.Done()
		w.drain(work)
		return nil
	})
	err := loops.Wait()
	w.jobs.Wait()
	return err
}

// due passes a task on whose time has come.
func (w *Worker) due(ctx context.Context, it *item) {
	l := w.lanes[it.bizType]
	if it.suspect {
		l = w.suspects
	}
	if !l.add(it) {
		w.giveBack(ctx, []*item{it})
	}
}

// allLanes are the types' lanes and that of the suspects.
func (w *Worker) allLanes() []*lane {
	return append(slices.Collect(maps.Values(w.lanes)), w.suspects)
}

// keep holds a task until its time, or gives it back when the worker drains.
func (w *Worker) keep(ctx context.Context, it *item) {
	if !w.hold.add(it) {
		w.giveBack(ctx, []*item{it})
	}
}

// drain gives back what is not running yet. Whatever turns up later, from
// deliveries still on their way or executions that end, meets closed doors and
// goes back as well.
func (w *Worker) drain(work context.Context) {
	back := w.hold.close()
	for _, l := range w.allLanes() {
		back = append(back, l.close()...)
	}
	w.giveBack(work, back)
}

// giveBack returns tasks to the ledger and acknowledges their messages. If the
// ledger does not answer, the messages stay with the broker.
func (w *Worker) giveBack(ctx context.Context, items []*item) (answered bool) {
	var ids []int64
	var runAts []time.Time
	for _, it := range items {
		ids, runAts = append(ids, it.id), append(runAts, it.msgRunAt)
	}
	if len(ids) == 0 {
		return true
	}
	if _, err := w.ledger.GiveBack(ctx, ids, runAts); err != nil {
		w.log.WarnContext(ctx, "give back: left to the broker and the sweep", "tasks", len(ids), "err", err)
		return false
	}
	for _, it := range items {
		it.done()
	}
	return true
}

// honourLoop applies requests that met an execution.
func (w *Worker) honourLoop(ctx context.Context) {
	tick := time.NewTicker(5 * w.cfg.SweepEvery)
	defer tick.Stop()
	for {
		if _, err := w.ledger.HonourRequests(ctx); err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "honour requests", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
