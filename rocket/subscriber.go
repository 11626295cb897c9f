package rocket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bide-mq/bide"
)

const (
	// assignPatience is how long a new consumer may take to be given its
	// queues. It takes milliseconds, unless one of several brokers is mute:
	// then the library waits 3 s for each of its heartbeats, asks any one broker
	// who else consumes, and when that was the mute one asks again after 20 s.
	assignPatience = 25 * time.Second
	// unknownPatience is how long the broker may not know a consumer that it
	// knew. It forgets one whose connection breaks at once, and the library
	// says who it is only every 30 s.
	unknownPatience = 2 * time.Second
	// persistEvery is how often the broker is told what is acknowledged; the
	// library's 5 s would repeat more after a crash.
	persistEvery = time.Second
)

// Subscriber receives the messages of one ledger from RocketMQ.
type Subscriber struct {
	cfg     Config
	log     *slog.Logger
	sup     *supervisor
	lineage *lineage
	current atomic.Pointer[intake]
	closing closing // consumers of ended sessions
}

var _ bide.Subscriber = (*Subscriber)(nil)

// NewSubscriber checks the configuration, after setting its defaults, and
// connects to nothing. It needs no facts: messages arrive the same way.
func NewSubscriber(cfg Config, logger *slog.Logger) (*Subscriber, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rocketmq subscriber: %w", err)
	}
	return &Subscriber{
		cfg: cfg, log: logger, lineage: newLineage(cfg),
		sup: &supervisor{cfg: cfg, log: logger, role: "subscriber"},
	}, nil
}

// Subscribe implements [bide.Subscriber]. It calls handle from many goroutines
// at once. The error wraps a [*bide.Fault].
func (r *Subscriber) Subscribe(ctx context.Context, handle func(bide.Delivery)) error {
	defer r.closing.await()
	return r.sup.run(ctx, func(ctx context.Context, s *session, up func()) error {
		return r.serve(ctx, s, handle, up)
	})
}

// Session says whether deliveries can be expected now: not while one of the
// brokers that the name server lists is silent.
func (r *Subscriber) Session() bide.Session {
	in := r.current.Load()
	if in == nil {
		return r.sup.down()
	}
	if err := errors.Join(in.s.err(), in.s.absent()); err != nil {
		return down(err)
	}
	return bide.Session{State: bide.SessionUp}
}

// serve consumes until the session or ctx ends.
func (r *Subscriber) serve(ctx context.Context, s *session, handle func(bide.Delivery), up func()) error {
	in := newIntake(r.cfg, r.log, s, r.lineage.next(), handle)
	started := make(chan error, 1)
	over := make(chan struct{})
	defer close(over)
	r.closing.add(func() { in.run(started, over) })
	if err := r.begin(ctx, in, started); err != nil || ctx.Err() != nil {
		return err
	}
	s.watch(in.known)
	r.current.Store(in)
	defer r.current.Store(nil)
	up()
	ticker := time.NewTicker(persistEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			in.persist()
		case <-s.ctx.Done():
			return s.err()
		case <-ctx.Done():
			in.drain()
			return nil
		}
	}
}

// begin waits until the consumer has its queues, be they none.
func (r *Subscriber) begin(ctx context.Context, in *intake, started <-chan error) error {
	timer := time.NewTimer(assignPatience)
	defer timer.Stop()
	assigned := in.handover.first
	for {
		select {
		case err := <-started:
			if err != nil {
				return fmt.Errorf("%w: %w", bide.ErrSessionDown, err)
			}
			started = nil
		case <-assigned:
			return nil
		case <-timer.C:
			return fmt.Errorf("%w: no queues were assigned in %s", bide.ErrSessionDown, assignPatience)
		case <-in.s.ctx.Done():
			return in.s.err()
		case <-ctx.Done():
			return nil
		}
	}
}

// known is the subscriber's probe: does the broker list this consumer in the
// group? The library itself does not tell whether it is connected.
func (in *intake) known(ctx context.Context, l *link) error {
	clients, err := l.conn.Consumers(ctx, in.cfg.Group())
	if err != nil {
		return err
	}
	for _, id := range clients {
		if strings.HasSuffix(id, "@"+in.instance) {
			in.seen(l)
			return nil
		}
	}
	if time.Since(in.lastSeen(l)) > unknownPatience {
		return fmt.Errorf("%w: %s does not know this consumer", bide.ErrSessionDown, l.subject())
	}
	return nil
}
