package worker

import (
	"context"
	"sync"
	"time"

	"github.com/bide-mq/bide"
)

const (
	// peekBatch is the most tasks looked up at once.
	peekBatch = 500
	// holdLimit is the longest a task is held in memory. More, and held
	// messages starve due ones behind the broker's prefetch.
	holdLimit = 2 * time.Second
	// faultMargin is how much before the time asked for a delivery counts as
	// the broker's fault.
	faultMargin = 2 * time.Second
	// faultSends is how many times a task is handed to a broker that delivers
	// too early.
	faultSends = 3
)

// arrival is a parsed message on its way to the ledger.
type arrival struct {
	message     bide.Message
	redelivered bool
	ack         func()
}

// inbox gathers arrivals for the look-up. It is unbounded: the broker's
// prefetch is the bound.
type inbox struct {
	mu      sync.Mutex
	waiting []arrival
	closed  bool
	wake    chan struct{}
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

func (in *inbox) add(a arrival) {
	in.mu.Lock()
	in.waiting = append(in.waiting, a)
	in.mu.Unlock()
	in.signal()
}

// close says that nothing more will arrive.
func (in *inbox) close() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.signal()
}

func (in *inbox) signal() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// take waits for arrivals and returns up to most of them; none when the inbox
// is closed and empty, or ctx has ended.
func (in *inbox) take(ctx context.Context, most int) []arrival {
	for {
		in.mu.Lock()
		n := min(len(in.waiting), most)
		batch := append([]arrival(nil), in.waiting[:n]...)
		in.waiting = in.waiting[n:]
		more, closed := len(in.waiting) > 0, in.closed
		in.mu.Unlock()
		if more || closed {
			in.signal()
		}
		if n > 0 || closed {
			return batch
		}
		select {
		case <-ctx.Done():
			return nil
		case <-in.wake:
		}
	}
}

// arrive sorts out a delivery by its body alone.
func (w *Worker) arrive(d bide.Delivery) {
	ctx := context.Background()
	w.observer.Count(Arrived, 1)
	message, err := bide.ParseMessage(d.Body)
	switch {
	case err != nil:
		w.observer.Count(Garbage, 1)
		w.log.WarnContext(ctx, "discarded a delivery", "err", err)
		d.Ack()
	case message.Ledger != w.cfg.Ledger:
		w.observer.Count(Foreign, 1)
		w.log.WarnContext(ctx, "discarded another ledger's message", "ledger", message.Ledger.String())
		d.Ack()
	case message.Probe():
		d.Ack()
	default:
		w.inbox.add(arrival{message: message, redelivered: d.Redelivered, ack: d.Ack})
	}
}

// peekLoop looks arrivals up. One look-up is under way at a time, so the more
// arrive, the more share one.
func (w *Worker) peekLoop(ctx context.Context) {
	for {
		batch := w.inbox.take(ctx, peekBatch)
		if len(batch) == 0 {
			return
		}
		w.insist(ctx, func() bool { return w.peek(ctx, batch) })
	}
}

// insist repeats a call until the ledger has answered or ctx has ended.
func (w *Worker) insist(ctx context.Context, call func() (answered bool)) {
	for !call() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.cfg.SweepEvery):
		}
	}
}

// peek decides about a batch of arrivals; false when the ledger did not answer.
func (w *Worker) peek(ctx context.Context, batch []arrival) bool {
	ids := make([]int64, len(batch))
	for i, a := range batch {
		ids[i] = a.message.TaskID
	}
	tasks, now, err := w.ledger.Peek(ctx, ids)
	if err != nil {
		if ctx.Err() == nil {
			w.log.WarnContext(ctx, "peek", "err", err)
		}
		return ctx.Err() != nil
	}
	w.clock.observe(now)
	live := make(map[int64]bide.Task, len(tasks))
	for _, t := range tasks {
		live[t.ID] = t
	}
	var back []*item
	for _, a := range batch {
		if it := w.judge(ctx, a, live, now); it != nil {
			back = append(back, it)
		}
	}
	w.insist(ctx, func() bool { return w.giveBack(ctx, back) })
	return true
}

// judge takes one arrival in hand, drops it, or returns it to be given back.
func (w *Worker) judge(ctx context.Context, a arrival, live map[int64]bide.Task, now time.Time) (back *item) {
	task, ok := live[a.message.TaskID]
	remaining := task.RunAt.Sub(now)
	switch {
	case !ok, task.State != bide.Waiting && task.State != bide.Sent,
		remaining > 0 && !task.RunAt.Equal(a.message.RunAt):
		w.observer.Count(Stale, 1)
		a.ack()
		return nil
	case w.lanes[task.BizType] == nil:
		w.observer.Count(Unhandled, 1)
		w.log.WarnContext(ctx, "no handler for this type here: the task stays until a worker that has one sweeps it",
			"biz_type", task.BizType, "task_id", task.ID)
		a.ack()
		return nil
	}
	it := &item{
		id: task.ID, bizType: task.BizType, runAt: task.RunAt, at: task.RunAt, msgRunAt: a.message.RunAt,
		via: bide.ViaBroker, done: a.ack,
		// What is not due yet has not been executed, whoever held it.
		suspect: a.redelivered && remaining <= 0 || task.Reclaims > 0,
	}
	if remaining > holdLimit {
		return w.early(ctx, a, task, it, now)
	}
	if !w.hold.add(it) {
		return it
	}
	return nil
}

// early gives a task back whose message came too soon, unless the broker keeps
// doing that: then the task stays SENT, and the sweep has it when it is
// overdue.
func (w *Worker) early(ctx context.Context, a arrival, task bide.Task, it *item, now time.Time) (back *item) {
	w.observer.Count(Early, 1)
	if a.message.DeliverAt.Sub(now) <= faultMargin {
		return it
	}
	w.observer.Count(BrokerFault, 1)
	w.log.ErrorContext(ctx, "the broker delivered long before the time it was asked for: look for a policy that shortens the delay",
		"task_id", task.ID, "asked_for", a.message.DeliverAt, "early_by", a.message.DeliverAt.Sub(now).String(), "sends", task.Sends)
	if task.Sends < faultSends {
		return it
	}
	it.done()
	return nil
}
