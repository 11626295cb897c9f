package rocket

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/bide-mq/bide"
)

const (
	// maxSpan is how far a queue's messages may be apart while the first of
	// them is held. At the library's 1,000, one held message in each of four
	// queues made others 60 ms late, instead of 27, at 3,000 messages/s.
	maxSpan = 20_000
	// maxCached and maxCachedMiB bound what is fetched and not acknowledged, of
	// the topic.
	maxCached    = 65_536
	maxCachedMiB = 256
	// tellPatience bounds the wait until the brokers know what was acknowledged,
	// and tellAgain is the pause between attempts.
	tellPatience = time.Second
	tellAgain    = 10 * time.Millisecond
	// fetchLag is how long after its beginning a fetch may change a position.
	fetchLag = 100 * time.Millisecond
)

// pushConsumer is the client library's consumer, which exports no name for it.
type pushConsumer interface {
	Start() error
	Shutdown() error
	Subscribe(topic string, selector consumer.MessageSelector, f func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)) error
	Unsubscribe(topic string) error
	Suspend()
	Rebalance()
	PersistConsumerOffset() error
}

// intake is what one session takes in, with a consumer of its own.
type intake struct {
	cfg      Config
	log      *slog.Logger
	s        *session
	handle   func(bide.Delivery)
	instance string
	handover *handover
	batches  *tally
	consumer pushConsumer // set before the first assignment
	started  time.Time    // when the consumer was

	mu        sync.Mutex
	sightings map[*link]time.Time

	released chan struct{} // closed when nothing can be acknowledged any more
}

func newIntake(cfg Config, log *slog.Logger, s *session, instance string, handle func(bide.Delivery)) *intake {
	return &intake{
		cfg: cfg, log: log, s: s, handle: handle, instance: instance,
		handover: newHandover(s), batches: newTally(), sightings: map[*link]time.Time{}, released: make(chan struct{}),
	}
}

// run has a consumer until over is closed. It reports how the start went, which
// may take some time after the session has ended, and so may the end.
func (in *intake) run(started chan<- error, over <-chan struct{}) {
	defer close(in.released)
	err := in.start()
	started <- err
	<-over
	in.batches.close()
	// A consumer that did not start has shut itself down.
	if err == nil {
		in.shutdown()
	}
}

func (in *intake) start() error {
	c, err := consumer.NewPushConsumer(
		consumer.WithNsResolver(in.cfg.resolver()),
		consumer.WithGroupName(in.cfg.Group()),
		consumer.WithInstance(in.instance),
		consumer.WithCredentials(in.cfg.clientCredentials()),
		// The default skips what came before a new group's first consumer.
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumerModel(consumer.Clustering),
		consumer.WithStrategy(in.handover.allocate),
		consumer.WithConsumeGoroutineNums(in.cfg.Goroutines),
		consumer.WithConsumeMessageBatchMaxSize(in.cfg.Batch),
		consumer.WithPullBatchSize(int32(in.cfg.Batch)),
		consumer.WithConsumeConcurrentlyMaxSpan(maxSpan),
		consumer.WithPullThresholdForTopic(maxCached),
		consumer.WithPullThresholdSizeForTopic(maxCachedMiB),
	)
	if err != nil {
		return fmt.Errorf("make consumer: %w", err)
	}
	if err := c.Subscribe(in.cfg.Topic(), consumer.MessageSelector{}, in.consume); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	in.consumer, in.started = c, time.Now()
	if err := c.Start(); err != nil {
		return fmt.Errorf("start consumer: %w", err)
	}
	return nil
}

// consume passes a batch on and returns when all of it is acknowledged, which
// is what acknowledges it at the broker, or when that has no effect any more.
func (in *intake) consume(_ context.Context, msgs ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	if !in.batches.enter() {
		<-in.released
		return consumer.ConsumeSuccess, nil
	}
	defer in.batches.leave()
	owed := newBatch(len(msgs))
	for _, m := range msgs {
		in.deliver(m, owed.ack())
	}
	select {
	case <-owed.done:
	case <-in.released:
	}
	return consumer.ConsumeSuccess, nil
}

// deliver acknowledges a message whose handler panics: the library would let
// its queue stand still for 15 minutes, and the ledger has the task.
func (in *intake) deliver(m *primitive.MessageExt, ack func()) {
	defer func() {
		if r := recover(); r != nil {
			in.log.ErrorContext(in.s.ctx, "handler panicked", "panic", r, "stack", string(debug.Stack()))
			ack()
		}
	}()
	again := in.handover.see(m)
	in.handle(bide.NewDelivery(m.Body, again, ack))
}

// persist tells the brokers what is acknowledged.
func (in *intake) persist() { _ = in.consumer.PersistConsumerOffset() } // an error says that it is shut down

// drain stops fetching and waits until all that has come is acknowledged, no
// longer than the drain timeout.
func (in *intake) drain() {
	in.consumer.Suspend()
	timer := time.NewTimer(in.cfg.DrainTimeout)
	defer timer.Stop()
	select {
	case <-in.batches.close():
		in.tell()
	case <-timer.C:
		in.persist()
	case <-in.s.ctx.Done():
	}
}

// tell sees to it that the brokers know that everything is acknowledged. The
// library notes that only after the handler has returned, tells them without
// waiting for an answer, and then closes the connection, which may come first.
// And a fetch that is under way tells them the position of when it began, so
// they must know the right one at two looks.
func (in *intake) tell() {
	ctx, cancel := context.WithTimeout(in.s.ctx, tellPatience)
	defer cancel()
	in.persist()
	for looks := 0; looks < 2; looks++ {
		pause := fetchLag
		if !in.handover.told(ctx) {
			in.persist()
			looks, pause = -1, tellAgain
		}
		if !sleep(ctx, pause) {
			in.log.WarnContext(ctx, "the broker may not know all that was acknowledged, which then comes again")
			return
		}
	}
}

// shutdown ends the consumer. The library's own way closes the channel that a
// fetch in progress may be about to write to, which kills the process. Queues
// that are not subscribed to are dropped without that.
func (in *intake) shutdown() {
	in.consumer.Suspend()
	_ = in.consumer.Unsubscribe(in.cfg.Topic())
	_ = in.consumer.Unsubscribe("%RETRY%" + in.cfg.Group())
	in.consumer.Rebalance()
	sleep(context.Background(), untilSilent(time.Since(in.started)))
	_ = in.consumer.Shutdown()
}

// untilSilent returns how long to wait with the shutdown of a client of this
// age. The library tells the brokers who it is a second after its start and
// every 30 s from then on. When that coincides with the shutdown it connects
// again, and for two minutes the broker gives queues to a consumer that is gone.
func untilSilent(age time.Duration) time.Duration {
	const first, every, before, after = time.Second, 30 * time.Second, 100 * time.Millisecond, 300 * time.Millisecond
	since := age - first + before
	if since < 0 {
		return 0
	}
	return max(0, before+after-since%every)
}

func (in *intake) seen(l *link) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.sightings[l] = time.Now()
}

// lastSeen is when the broker last knew the consumer, or was first asked.
func (in *intake) lastSeen(l *link) time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, asked := in.sightings[l]; !asked {
		in.sightings[l] = time.Now()
	}
	return in.sightings[l]
}

// batch counts the messages of a batch that are not acknowledged.
type batch struct {
	left atomic.Int64
	done chan struct{} // closed when none is left
}

func newBatch(n int) *batch {
	b := &batch{done: make(chan struct{})}
	b.left.Store(int64(n))
	return b
}

// ack returns one message's acknowledgement, which counts once.
func (b *batch) ack() func() {
	var acked atomic.Bool
	return func() {
		if acked.CompareAndSwap(false, true) && b.left.Add(-1) == 0 {
			close(b.done)
		}
	}
}
