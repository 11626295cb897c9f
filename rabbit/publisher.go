package rabbit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

// Publisher hands messages to RabbitMQ. It works while Run runs.
type Publisher struct {
	cfg     Config
	caps    bide.Capabilities
	queues  []string // by level, the delivery queue first
	tiers   []queue
	log     *slog.Logger
	sup     *supervisor
	current atomic.Pointer[lanes]
}

var _ bide.Publisher = (*Publisher)(nil)

// NewPublisher checks the configuration, after setting its defaults, and
// connects to nothing.
func NewPublisher(cfg Config, logger *slog.Logger) (*Publisher, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rabbitmq publisher: %w", err)
	}
	ttls, err := cfg.ttls()
	if err != nil {
		return nil, err
	}
	tiers, err := cfg.tiers()
	if err != nil {
		return nil, err
	}
	return &Publisher{
		cfg:    cfg,
		caps:   bide.Capabilities{Delays: ttls, Lead: cfg.Lead, Window: cfg.Window},
		tiers:  tiers,
		queues: cfg.Queues(),
		log:    logger,
		sup:    &supervisor{cfg: cfg, log: logger, role: "publisher"},
	}, nil
}

// Capabilities describes the tiers: level n waits its queue's time to live.
func (p *Publisher) Capabilities() bide.Capabilities {
	caps := p.caps
	caps.Delays = slices.Clone(caps.Delays)
	return caps
}

// Run keeps a session until ctx ends, then waits for the confirms of what was
// written, no longer than the confirm timeout, and returns nil. It returns an
// error that wraps a [*bide.Fault] when the first session meets a fault that no
// retry mends.
func (p *Publisher) Run(ctx context.Context) error { return p.sup.run(ctx, p.serve) }

// Session says whether publishing makes sense now.
func (p *Publisher) Session() bide.Session {
	lanes := p.current.Load()
	if lanes == nil {
		return p.sup.down()
	}
	return lanes.state()
}

// Publish implements [bide.Publisher]. Without a session, or while the broker
// blocks it, everything is refused at once.
func (p *Publisher) Publish(ctx context.Context, sends []bide.Send) []bide.Outcome {
	b := newBatch(sends)
	if len(sends) == 0 {
		return b.outcomes
	}
	lanes := p.current.Load()
	byLevel := make(map[int][]int)
	for i, send := range sends {
		byLevel[send.Level] = append(byLevel[send.Level], i)
	}
	for level, indices := range byLevel {
		j := job{b, indices}
		switch {
		case level < 0 || level >= len(p.queues):
			j.refuse(fmt.Errorf("level %d: want 0 to %d", level, len(p.caps.Delays)))
		case lanes == nil:
			j.refuse(p.noSession())
		case lanes.s.blocked.Load() != nil:
			j.refuse(lanes.state().Err)
		default:
			lanes.lane[level].push(j)
		}
	}
	return b.wait(ctx)
}

func (p *Publisher) noSession() error {
	if err := p.sup.down().Err; err != nil && errors.Is(err, bide.ErrSessionDown) {
		return err
	}
	return errNone
}

// serve declares the topology, opens the lanes and stays until the session or
// ctx ends.
func (p *Publisher) serve(ctx context.Context, s *session, up func()) error {
	defer s.close()
	if err := p.declare(ctx, s); err != nil {
		return err
	}
	lanes, err := p.openLanes(s)
	if err != nil {
		return err
	}
	s.tasks.Go(func() { s.probe(openAndClose) })
	p.current.Store(lanes)
	defer p.current.Store(nil)
	up()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
	}
	p.current.Store(nil)
	lanes.drain()
	return nil
}

// openAndClose is the publisher's probe: it needs an answer from the broker
// and none from any queue.
func openAndClose(conn *amqp.Connection) error {
	return throwaway(conn, func(*amqp.Channel) error { return nil })
}

// lanes are the open lanes of one session, by level.
type lanes struct {
	s    *session
	lane []*lane
}

func (p *Publisher) openLanes(s *session) (*lanes, error) {
	missing := make(chan struct{}, 1)
	tell := func() {
		select {
		case missing <- struct{}{}:
		default:
		}
	}
	opened := &lanes{s: s}
	for _, name := range p.queues {
		l, err := openLane(s, name, tell)
		if err != nil {
			return nil, err
		}
		opened.lane = append(opened.lane, l)
	}
	s.tasks.Go(func() { p.redeclare(s, missing) })
	return opened, nil
}

// redeclare makes queues again that were found missing.
func (p *Publisher) redeclare(s *session, missing <-chan struct{}) {
	for {
		select {
		case <-s.done:
			return
		case <-missing:
		}
		ctx, cancel := s.context()
		if err := p.declare(ctx, s); err != nil {
			s.fail(err)
		}
		cancel()
	}
}

// declare makes sure of all queues, the delivery queue first.
func (p *Publisher) declare(ctx context.Context, s *session) error {
	return errors.Join(declareDelivery(ctx, s.conn, p.cfg), declare(s.conn, p.tiers...))
}

// state adds to the session's own state what the confirms tell.
func (l *lanes) state() bide.Session {
	state := l.s.state()
	if state.State != bide.SessionUp {
		return state
	}
	for _, lane := range l.lane {
		if age := lane.age(); age > muteAfter {
			return bide.Session{
				State: bide.SessionDown,
				Err:   fmt.Errorf("%w: queue %s, unconfirmed for %s", bide.ErrConfirmTimeout, lane.queue, age.Round(time.Millisecond)),
			}
		}
	}
	return state
}

// drain waits until nothing is unconfirmed, no longer than the confirm timeout.
func (l *lanes) drain() {
	deadline := time.NewTimer(l.s.cfg.ConfirmTimeout)
	defer deadline.Stop()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		idle := true
		for _, lane := range l.lane {
			idle = idle && lane.idle()
		}
		if idle {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return
		case <-l.s.done:
			return
		}
	}
}
