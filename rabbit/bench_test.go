package rabbit_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rabbit"
)

// BenchmarkPublish compares confirmed publishes through the driver with those
// of the bare client library, both persistent, into one tier, with at most a
// window unconfirmed.
func BenchmarkPublish(b *testing.B) {
	for _, of := range []rabbit.QueueType{rabbit.Quorum, rabbit.Classic} {
		b.Run(string(of), func(b *testing.B) {
			cfg := cleanConfig(b)
			cfg.QueueType, cfg.Tiers = of, levels.Table{time.Hour}
			b.Cleanup(func() { deleteQueues(b, cfg) })
			p, err := rabbit.NewPublisher(cfg, slog.New(slog.DiscardHandler))
			require.NoError(b, err)
			brokertest.Start(b, p)
			b.Run("driver", func(b *testing.B) { publishByDriver(b, p, cfg) })
			b.Run("library", func(b *testing.B) { publishByLibrary(b, cfg) })
		})
	}
}

// publishByDriver publishes batches from two callers, as the relay does to
// keep the window full.
func publishByDriver(b *testing.B, p *rabbit.Publisher, cfg rabbit.Config) {
	const callers = 2
	batch := sends(p, cfg, cfg.Window, 1)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for left := (b.N + caller) / callers; left > 0; left -= len(batch) {
				for _, o := range p.Publish(b.Context(), batch[:min(left, len(batch))]) {
					if o.Status != bide.Confirmed {
						b.Error(o.Err)
					}
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func publishByLibrary(b *testing.B, cfg rabbit.Config) {
	ch := admin(b, cfg.URL)
	require.NoError(b, ch.Confirm(false))
	message := bide.Message{Ledger: cfg.Ledger, TaskID: 1, RunAt: time.Now(), DeliverAt: time.Now()}
	publishing := amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: message.ID(), Body: message.Body()}
	inflight := make(chan *amqp.DeferredConfirmation, cfg.Window-1)
	var wg sync.WaitGroup
	b.ResetTimer()
	wg.Go(func() {
		for confirm := range inflight {
			if !confirm.Wait() {
				b.Error("not confirmed")
			}
		}
	})
	for range b.N {
		confirm, err := ch.PublishWithDeferredConfirm("", cfg.Queues()[1], true, false, publishing)
		require.NoError(b, err)
		inflight <- confirm
	}
	close(inflight)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
