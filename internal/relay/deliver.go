package relay

import (
	"context"
	"errors"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
)

// deliver publishes a batch and settles it. claimedAt is the local time before
// the claim, which ties the database's clock to ours on the late side: a task
// is rather sent by the next lower level than too late.
func (r *Relay) deliver(ctx context.Context, batch bide.Batch, claimedAt time.Time) {
	now := batch.Now.Add(time.Since(claimedAt))
	sends, back := r.route(batch, now)
	back = append(back, r.publish(ctx, sends)...)
	r.gates.leave(batch.Tasks, len(back) > 0)
	r.settle(ctx, batch, back, claimedAt)
}

// route chooses each message's way by the time that remains now. A task that
// has slipped below its window since the claim waits for the next one.
func (r *Relay) route(batch bide.Batch, now time.Time) (sends []bide.Send, back []int64) {
	sends = make([]bide.Send, 0, len(batch.Tasks))
	for _, t := range batch.Tasks {
		answer := r.plan.At(t.RunAt.Sub(now))
		if answer.Kind != levels.Send {
			back = append(back, t.TaskID)
			continue
		}
		sends = append(sends, r.send(t.TaskID, t.RunAt, answer.Level, now))
	}
	return sends, back
}

func (r *Relay) send(id int64, runAt time.Time, level int, now time.Time) bide.Send {
	return bide.Send{Level: level, Message: bide.Message{
		Ledger: r.cfg.Ledger, TaskID: id, RunAt: runAt,
		DeliverAt: r.plan.DeliverAt(level, runAt, now).Truncate(time.Microsecond),
	}}
}

// publish returns the ids of the tasks whose messages are not confirmed.
func (r *Relay) publish(ctx context.Context, sends []bide.Send) (back []int64) {
	if len(sends) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Lease/2)
	defer cancel()
	outcomes := r.publisher.Publish(ctx, sends)
	for i, o := range outcomes {
		if o.Status != bide.Confirmed {
			back = append(back, sends[i].Message.TaskID)
		}
	}
	r.judge(ctx, sends, outcomes)
	return back
}

// judge counts the outcomes by level and closes the levels that do not answer.
func (r *Relay) judge(ctx context.Context, sends []bide.Send, outcomes []bide.Outcome) {
	type fate struct {
		level  int
		status bide.Status
	}
	counts := map[fate]int{}
	reasons := map[fate]error{}
	for i, o := range outcomes {
		f := fate{sends[i].Level, o.Status}
		counts[f]++
		if reasons[f] == nil {
			reasons[f] = o.Err
		}
		if errors.Is(o.Err, bide.ErrConfirmTimeout) || errors.Is(o.Err, bide.ErrUnroutable) {
			r.gates.close(f.level)
		}
	}
	for f, n := range counts {
		r.observer.Published(f.level, f.status, n)
		if f.status != bide.Confirmed {
			r.log.WarnContext(ctx, "publish", "level", f.level, "status", f.status.String(), "messages", n, "err", reasons[f])
		}
	}
}

// settle ends the batch in the ledger, trying until its lease is nearly over.
// After that another relay gives it back.
func (r *Relay) settle(ctx context.Context, batch bide.Batch, back []int64, claimedAt time.Time) {
	for pause := r.cfg.Poll; ; pause *= 2 {
		err := r.ledger.Settle(ctx, batch.ID, back)
		if err == nil {
			return
		}
		if ctx.Err() != nil || time.Since(claimedAt)+pause > r.cfg.Lease {
			r.log.WarnContext(ctx, "settle: left to recovery", "batch_id", batch.ID, "err", err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// probeLoop asks quarantined levels whether they confirm again.
func (r *Relay) probeLoop(ctx context.Context) {
	every(ctx, r.cfg.ProbeEvery, func() {
		for _, level := range r.gates.quarantined() {
			if r.publisher.Session().State == bide.SessionUp {
				r.probe(ctx, level)
			}
		}
	})
}

// probe opens the level when a message that belongs to no task is confirmed.
func (r *Relay) probe(ctx context.Context, level int) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Lease/2)
	defer cancel()
	now := time.Now()
	outcomes := r.publisher.Publish(ctx, []bide.Send{r.send(0, now.Truncate(time.Microsecond), level, now)})
	if outcomes[0].Status == bide.Confirmed {
		r.gates.open(level)
		r.log.InfoContext(ctx, "level confirms again", "level", level)
	}
}
