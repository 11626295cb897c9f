package rocket_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rocket"
)

// BenchmarkLateness sends tasks by the plan, 1,000 per second and due 1 to 8 s
// ahead, holds what arrives until it is due, and reports how late that is, in
// milliseconds, beside the arrival's own lag. There is no ledger in it.
func BenchmarkLateness(b *testing.B) {
	for _, bb := range []struct {
		name, line string
		mode       rocket.Mode
	}{{"4 levels", "4", rocket.Levels}, {"5 levels", "5", rocket.Levels}, {"5 timers", "5", rocket.Timers}} {
		b.Run(bb.name, func(b *testing.B) {
			cfg := shared(b, bb.line).config(bb.mode)
			p := run(b, cfg)
			for b.Loop() {
				measureLateness(b, cfg, p, 10*time.Second, 1000)
			}
		})
	}
}

// stopwatch collects lateness.
type stopwatch struct {
	mu         sync.Mutex
	late, lags []float64
	early      int
}

func (w *stopwatch) arrive(m bide.Message, at time.Time) {
	time.AfterFunc(m.RunAt.Sub(at), func() {
		late := time.Since(m.RunAt)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.late = append(w.late, max(late, at.Sub(m.RunAt)).Seconds()*1000)
		w.lags = append(w.lags, at.Sub(m.DeliverAt).Seconds()*1000)
		if late < 0 {
			w.early++
		}
	})
}

func (w *stopwatch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.late)
}

func measureLateness(b *testing.B, cfg rocket.Config, p *rocket.Publisher, duration time.Duration, rate int) {
	watch := &stopwatch{}
	s := newSubscriber(b, cfg)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(b.Context())
	go func() {
		ended <- s.Subscribe(ctx, func(d bide.Delivery) {
			m, err := bide.ParseMessage(d.Body)
			if err != nil {
				b.Error(err)
			}
			watch.arrive(m, time.Now())
			time.AfterFunc(time.Until(m.RunAt), d.Ack)
		})
	}()
	await(b, s, bide.SessionUp)
	sent := relayLoad(b, cfg, p, duration, rate)
	require.Eventually(b, func() bool { return watch.count() >= sent }, patience, 10*time.Millisecond)
	cancel()
	require.NoError(b, <-ended)
	slices.Sort(watch.late)
	slices.Sort(watch.lags)
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
		b.ReportMetric(quantile(watch.late, q.at), q.name+"_late_ms")
		b.ReportMetric(quantile(watch.lags, q.at), q.name+"_lag_ms")
	}
	b.ReportMetric(float64(watch.early), "early")
	b.ReportMetric(float64(sent), "tasks")
}

func quantile(sorted []float64, q float64) float64 {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// relayLoad does what a relay does with a ledger that has a task more every
// millisecond, and returns how many it has handed over.
func relayLoad(b *testing.B, cfg rocket.Config, p *rocket.Publisher, duration time.Duration, rate int) int {
	plan, err := levels.NewPlan(p.Capabilities(), cfg.Slack)
	require.NoError(b, err)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var waiting []time.Time
	var publishing sync.WaitGroup
	began, made, sent := time.Now(), 0, 0
	for now := range ticker.C {
		for ; made < int(min(now.Sub(began), duration).Seconds()*float64(rate)); made++ {
			waiting = append(waiting, now.Add(time.Second+rand.N(7*time.Second)).Truncate(time.Microsecond))
		}
		var sends []bide.Send
		var rest []time.Time
		for _, runAt := range waiting {
			answer := plan.At(runAt.Sub(now))
			if answer.Kind != levels.Send {
				rest = append(rest, runAt)
				continue
			}
			sent++
			sends = append(sends, bide.Send{Level: answer.Level, Message: bide.Message{
				Ledger: cfg.Ledger, TaskID: int64(sent), RunAt: runAt, DeliverAt: plan.DeliverAt(answer.Level, runAt, now).Truncate(time.Microsecond),
			}})
		}
		waiting = rest
		publishing.Go(func() {
			for _, o := range p.Publish(b.Context(), sends) {
				if o.Err != nil {
					b.Error(o.Err)
				}
			}
		})
		if now.Sub(began) > duration && len(waiting) == 0 {
			break
		}
	}
	publishing.Wait()
	return sent
}

// BenchmarkPublish reports how many messages per second are confirmed, in
// batches of a relay's size, four at a time.
func BenchmarkPublish(b *testing.B) {
	for _, bb := range []struct {
		name, line string
		mode       rocket.Mode
	}{{"4 levels", "4", rocket.Levels}, {"5 levels", "5", rocket.Levels}, {"5 timers", "5", rocket.Timers}} {
		b.Run(bb.name, func(b *testing.B) {
			cfg := shared(b, bb.line).config(bb.mode)
			p := run(b, cfg)
			level := 1
			if p.Capabilities().Timers {
				level = bide.LevelTimer
			}
			const batches, size = 16, 1024
			for b.Loop() {
				var publishing errgroup.Group
				publishing.SetLimit(4)
				for n := range batches {
					publishing.Go(func() error {
						sends := make([]bide.Send, size)
						for i := range sends {
							sends[i] = in(cfg, int64(n*size+i+1), level, time.Second)
						}
						confirm(b, p, sends...)
						return nil
					})
				}
				require.NoError(b, publishing.Wait())
			}
			b.ReportMetric(float64(b.N*batches*size)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}
