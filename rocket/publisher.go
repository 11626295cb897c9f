package rocket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/bide-mq/bide"
)

// Publisher hands messages to RocketMQ. It works while Run runs.
type Publisher struct {
	cfg     Config
	facts   Facts
	log     *slog.Logger
	sup     *supervisor
	current atomic.Pointer[senders]
	closing closing // producers of ended sessions
}

var _ bide.Publisher = (*Publisher)(nil)

// NewPublisher checks the configuration, after setting its defaults, and
// connects to nothing. facts are what [Discover] returned for it.
func NewPublisher(cfg Config, facts Facts, logger *slog.Logger) (*Publisher, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rocketmq publisher: %w", err)
	}
	if facts.Mode != Levels && facts.Mode != Timers {
		return nil, errors.New("rocketmq publisher: want the facts that Discover returned")
	}
	return &Publisher{
		cfg: cfg, facts: facts, log: logger,
		sup: &supervisor{cfg: cfg, log: logger, role: "publisher"},
	}, nil
}

// Capabilities describes the brokers' levels, ascending, or their timers.
func (p *Publisher) Capabilities() bide.Capabilities { return p.facts.capabilities(p.cfg) }

// Run keeps a session until ctx ends, then waits for the answers to what was
// sent, no longer than the confirm timeout, and returns nil. It returns an
// error that wraps a [*bide.Fault] when the first session meets a fault that no
// retry mends, and when a later one finds that the brokers' levels or timers
// are others than those it was made for.
func (p *Publisher) Run(ctx context.Context) error {
	defer p.closing.await()
	return p.sup.run(ctx, p.serve)
}

// Session says whether publishing makes sense now.
func (p *Publisher) Session() bide.Session {
	current := p.current.Load()
	if current == nil {
		return p.sup.down()
	}
	return current.state()
}

// serve sends until the session or ctx ends.
func (p *Publisher) serve(ctx context.Context, s *session, up func()) error {
	if err := p.recheck(s); err != nil {
		return err
	}
	producer, err := newProducer(p.cfg, s)
	if err != nil {
		return err
	}
	routed := make(chan error, 1)
	current := newSenders(p.cfg, p.facts, s, producer)
	p.closing.add(func() {
		routed <- learnRoute(producer, p.cfg)
		<-s.ctx.Done()
		current.drain(context.Background()) // each send ends with its session, or soon
		_ = producer.Shutdown()             // it has no error to give
	})
	select {
	case err := <-routed:
		if err != nil {
			return err
		}
	case <-s.ctx.Done():
		return s.err()
	case <-ctx.Done():
		return nil
	}
	s.watch(p.askQueue)
	p.current.Store(current)
	up()
	select {
	case <-s.ctx.Done():
		p.current.Store(nil)
		return s.err()
	case <-ctx.Done():
	}
	p.current.Store(nil)
	patience, cancel := context.WithTimeout(s.ctx, p.cfg.ConfirmTimeout)
	defer cancel()
	current.drain(patience)
	return nil
}

// recheck compares the brokers with what they were when the plan was made. A
// broker with another table would wait another time than the one asked for.
func (p *Publisher) recheck(s *session) error {
	facts := p.facts
	if p.cfg.mustAsk() {
		var err error
		if facts, err = decide(p.cfg, factsOf(s.links)); err != nil {
			return err
		}
	}
	if p.facts.same(facts) {
		return nil
	}
	return &bide.Fault{Err: errChanged, Finding: bide.Finding{
		Severity: bide.SeverityError, Subject: p.cfg.endpoint(),
		Problem: fmt.Sprintf("has changed: it was %s and is %s", p.facts, facts), Remedy: "start the service again",
	}}
}

// askQueue is the publisher's probe: a question about the topic that costs the
// broker next to nothing.
func (p *Publisher) askQueue(ctx context.Context, l *link) error {
	_, err := l.conn.MaxOffset(ctx, p.cfg.Topic(), 0)
	return err
}

// Publish implements [bide.Publisher]. Without a session everything is refused
// at once.
func (p *Publisher) Publish(ctx context.Context, sends []bide.Send) []bide.Outcome {
	outcomes := make([]bide.Outcome, len(sends))
	results := make(chan result, len(sends))
	go p.dispatch(ctx, sends, results)
	for n := range sends {
		select {
		case r := <-results:
			outcomes[r.index] = r.outcome
			continue
		case <-ctx.Done():
		}
		fill(ctx, outcomes, results, len(sends)-n)
		break
	}
	return outcomes
}

// result is the outcome of one of the sends.
type result struct {
	index   int
	outcome bide.Outcome
}

// fill takes the results that are there, at most n, and says of the others that
// ctx ended first.
func fill(ctx context.Context, outcomes []bide.Outcome, results <-chan result, n int) {
	for range n {
		select {
		case r := <-results:
			outcomes[r.index] = r.outcome
		default:
		}
	}
	for i, o := range outcomes {
		if o.Status == bide.Unknown && o.Err == nil {
			outcomes[i].Err = context.Cause(ctx)
		}
	}
}

// dispatch brings each send on its way.
func (p *Publisher) dispatch(ctx context.Context, sends []bide.Send, results chan<- result) {
	for i, send := range sends {
		current := p.current.Load()
		if current == nil {
			results <- result{i, refused(p.noSession())}
			continue
		}
		current.send(ctx, send, func(o bide.Outcome) { results <- result{i, o} })
	}
}

func refused(err error) bide.Outcome { return bide.Outcome{Status: bide.Refused, Err: err} }

func (p *Publisher) noSession() error {
	if err := p.sup.down().Err; errors.Is(err, bide.ErrSessionDown) {
		return err
	}
	return errNone
}

func (f Facts) String() string {
	if f.Mode == Timers {
		return fmt.Sprintf("timers up to %s", f.Horizon)
	}
	return fmt.Sprintf("%d levels, %s to %s", len(f.table), f.table[0].delay.Round(time.Second), f.table[len(f.table)-1].delay)
}
