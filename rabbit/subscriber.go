package rabbit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

// Subscriber receives the messages of one ledger from RabbitMQ, on a
// connection of its own.
type Subscriber struct {
	cfg     Config
	log     *slog.Logger
	sup     *supervisor
	current atomic.Pointer[intake]
}

var _ bide.Subscriber = (*Subscriber)(nil)

// NewSubscriber checks the configuration, after setting its defaults, and
// connects to nothing.
func NewSubscriber(cfg Config, logger *slog.Logger) (*Subscriber, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rabbitmq subscriber: %w", err)
	}
	return &Subscriber{cfg: cfg, log: logger, sup: &supervisor{cfg: cfg, log: logger, role: "subscriber"}}, nil
}

// Subscribe implements [bide.Subscriber]. It calls handle from several
// goroutines at once, one per consuming channel. The error wraps a [*bide.Fault].
func (r *Subscriber) Subscribe(ctx context.Context, handle func(bide.Delivery)) error {
	return r.sup.run(ctx, func(ctx context.Context, s *session, up func()) error {
		return r.serve(ctx, s, handle, up)
	})
}

// Session says whether deliveries can be expected now: not while the delivery
// queue is missing or does not answer.
func (r *Subscriber) Session() bide.Session {
	in := r.current.Load()
	if in == nil {
		return r.sup.down()
	}
	return in.state()
}

// serve consumes until the session or ctx ends.
func (r *Subscriber) serve(ctx context.Context, s *session, handle func(bide.Delivery), up func()) error {
	defer s.close()
	if err := declareDelivery(ctx, s.conn, r.cfg); err != nil {
		return err
	}
	other := r.cfg.deliveryQueue(r.cfg.QueueType.other())
	left, err := exists(s.conn, other)
	if err != nil {
		return translate(err)
	}
	in := &intake{s: s, log: r.log, handle: handle, ready: up, own: int32(r.cfg.Consumers), owed: newTally()} //nolint:gosec // at most 64
	for range r.cfg.Consumers {
		in.start(ctx, consumer{queue: r.cfg.DeliveryQueue(), own: true})
	}
	if left {
		in.start(ctx, consumer{queue: other})
	}
	s.tasks.Go(func() { s.probe(in.probe) })
	r.current.Store(in)
	defer r.current.Store(nil)
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
	}
	in.drain()
	return nil
}

// intake is what one session takes in.
type intake struct {
	s      *session
	log    *slog.Logger
	handle func(bide.Delivery)
	ready  func()
	once   sync.Once

	consumers sync.WaitGroup
	tags      atomic.Uint64 // makes consumer tags, unique within a connection
	own       int32         // consumers of the delivery queue
	consuming atomic.Int32  // those of them that consume
	owed      *tally        // deliveries without an acknowledgement
}

func (in *intake) start(ctx context.Context, c consumer) {
	c.in = in
	in.consumers.Add(1)
	in.s.tasks.Go(func() {
		defer in.consumers.Done()
		c.run(ctx)
	})
}

// probe asks after the delivery queue itself: a queue whose leader is gone
// delivers nothing over a perfect connection. That it is missing is found and
// mended by its consumers.
func (in *intake) probe(conn *amqp.Connection) error {
	_, err := exists(conn, in.s.cfg.DeliveryQueue())
	return err
}

func (in *intake) state() bide.Session {
	state := in.s.state()
	if state.State == bide.SessionUp && in.consuming.Load() < in.own {
		return bide.Session{State: bide.SessionDown, Err: fmt.Errorf("%w: not consuming %s", bide.ErrSessionDown, in.s.cfg.DeliveryQueue())}
	}
	return state
}

// setConsuming counts a consumer of the delivery queue in or out.
func (in *intake) setConsuming(on bool) {
	if !on {
		in.consuming.Add(-1)
		return
	}
	if in.consuming.Add(1) == in.own {
		in.once.Do(in.ready)
	}
}

// ackLinger is how long the connection outlives its last acknowledgement. The
// broker's channel keeps acknowledgements to itself while 32 commands to a
// quorum queue are on their way (SOFT_LIMIT in rabbit_fifo_client), and a
// channel that closes meanwhile takes them along: the messages come again.
const ackLinger = 200 * time.Millisecond

// drain lets the consumers pass on what had arrived and waits until all of it
// is acknowledged, no longer than the drain timeout in all.
func (in *intake) drain() {
	timer := time.NewTimer(in.s.cfg.DrainTimeout)
	defer timer.Stop()
	passed := make(chan struct{})
	in.s.tasks.Go(func() {
		in.consumers.Wait()
		close(passed)
	})
	if !in.await(passed, timer.C) || !in.await(in.owed.settled(), timer.C) {
		return
	}
	linger := time.NewTimer(ackLinger - in.owed.sinceLast())
	defer linger.Stop()
	in.await(nil, linger.C)
}

// await waits for done and reports false when the session or the time ended.
func (in *intake) await(done <-chan struct{}, over <-chan time.Time) bool {
	select {
	case <-done:
		return true
	case <-in.s.done:
		return false
	case <-over:
		return false
	}
}
