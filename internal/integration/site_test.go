package integration

import (
	"context"
	_ "embed"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/internal/execute"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/relay"
	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/outbox"
	"github.com/bide-mq/bide/rabbit"
	"github.com/bide-mq/bide/rocket"
)

// site is where services run. It travels to child processes as JSON.
type site struct {
	DatabaseURL string
	// Rabbit or Rocket is the broker; both are nil where there is none.
	Rabbit *rabbit.Config
	Rocket *rocket.Config
}

func (s site) hasBroker() bool { return s.Rabbit != nil || s.Rocket != nil }

// newPublisher returns the driver of the site's broker, and the slack.
func (s site) newPublisher(ctx context.Context, log *slog.Logger) (brokertest.Publisher, time.Duration, error) {
	if s.Rabbit != nil {
		p, err := rabbit.NewPublisher(*s.Rabbit, log)
		return p, s.Rabbit.Slack, err
	}
	facts, err := discover(ctx, *s.Rocket)
	if err != nil {
		return nil, 0, err
	}
	p, err := rocket.NewPublisher(*s.Rocket, facts, log)
	return p, s.Rocket.Slack, err
}

// newSubscriber returns the driver of the site's broker, nil without one.
func (s site) newSubscriber(log *slog.Logger) (bide.Subscriber, error) {
	switch {
	case s.Rabbit != nil:
		return rabbit.NewSubscriber(*s.Rabbit, log)
	case s.Rocket != nil:
		return rocket.NewSubscriber(*s.Rocket, log)
	}
	return nil, nil
}

// openPool opens a service's database.
func (s site) openPool(ctx context.Context, conns int) (*pgxpool.Pool, *outbox.Ledger, error) {
	cfg, err := outbox.PoolConfig(s.DatabaseURL, conns)
	if err != nil {
		return nil, nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	ledger, err := outbox.Open(ctx, pool, outbox.DefaultSchema)
	if err != nil {
		pool.Close()
	}
	return pool, ledger, err
}

// relaySpec says how a relay differs from a plain one.
type relaySpec struct {
	relay.Config
	publisher func(bide.Publisher) bide.Publisher
	ledger    func(relay.Ledger) relay.Ledger
}

// producer is a relay with what it stands on.
type producer struct {
	pool      *pgxpool.Pool
	publisher brokertest.Publisher
	relay     *relay.Relay
}

func (s site) newProducer(ctx context.Context, spec relaySpec, observer relay.Observer, log *slog.Logger) (*producer, error) {
	pool, opened, err := s.openPool(ctx, 4)
	if err != nil {
		return nil, err
	}
	p := &producer{pool: pool}
	var slack time.Duration
	if p.publisher, slack, err = s.newPublisher(ctx, log); err != nil {
		return nil, err
	}
	plan, err := levels.NewPlan(p.publisher.Capabilities(), slack)
	if err != nil {
		return nil, err
	}
	var ledger relay.Ledger = opened
	if spec.ledger != nil {
		ledger = spec.ledger(ledger)
	}
	var publisher bide.Publisher = p.publisher
	if spec.publisher != nil {
		publisher = spec.publisher(publisher)
	}
	spec.Ledger = opened.ID()
	p.relay = relay.New(spec.Config, ledger, publisher, plan, observer, log)
	return p, nil
}

// run relays until ctx ends. The session outlives the relay, as in the
// program.
func (p *producer) run(ctx context.Context) error {
	defer p.pool.Close()
	session, closeSession := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- p.publisher.Run(session) }()
	err := p.relay.Run(ctx)
	closeSession()
	if sessionErr := <-ended; err == nil {
		err = sessionErr
	}
	return err
}

// workerSpec says how a worker differs from a plain one, which closes orders.
type workerSpec struct {
	worker.Config
	backoff outbox.Backoff
	// handlers by biz_type; nil for the one that closes orders.
	handlers map[string]handler.Handler
	// handler wraps each of them.
	handler    func(handler.Handler) handler.Handler
	subscriber func(bide.Subscriber) bide.Subscriber
	executor   func(worker.Executor) worker.Executor
}

// consumer is a worker with what it stands on.
type consumer struct {
	pool       *pgxpool.Pool
	subscriber bide.Subscriber // nil without a broker
	worker     *worker.Worker
}

func (s site) newConsumer(ctx context.Context, spec workerSpec, observer worker.Observer, log *slog.Logger) (*consumer, error) {
	spec = spec.withDefaults()
	pool, ledger, err := s.openPool(ctx, 2*spec.Executions+4)
	if err != nil {
		return nil, err
	}
	c := &consumer{pool: pool}
	if spec.handlers == nil {
		if spec.handlers, err = closing(ctx, pool); err != nil {
			return nil, err
		}
	}
	if spec.handler != nil {
		for bizType, h := range spec.handlers {
			spec.handlers[bizType] = spec.handler(h)
		}
	}
	if c.subscriber, err = s.newSubscriber(log); err != nil {
		return nil, err
	}
	if c.subscriber != nil && spec.subscriber != nil {
		c.subscriber = spec.subscriber(c.subscriber)
	}
	var executor worker.Executor = execute.New(ledger, spec.handlers, spec.backoff)
	if spec.executor != nil {
		executor = spec.executor(executor)
	}
	spec.Ledger = ledger.ID()
	c.worker = worker.New(spec.Config, ledger, executor, c.subscriber, observer, log)
	return c, nil
}

func (w workerSpec) withDefaults() workerSpec {
	if w.Executions == 0 {
		w.Executions = 4
	}
	if w.backoff == (outbox.Backoff{}) {
		w.backoff = outbox.Backoff{MaxAttempts: 10, First: time.Second, Most: 10 * time.Minute}
	}
	return w
}

func (c *consumer) run(ctx context.Context) error {
	defer c.pool.Close()
	return c.worker.Run(ctx)
}

//go:embed testdata/handlers.yaml
var handlersYAML []byte

// closing returns the handler that closes orders, as a handlers file gives it.
func closing(ctx context.Context, pool *pgxpool.Pool) (map[string]handler.Handler, error) {
	return prepared(ctx, pool, handlersYAML)
}

func prepared(ctx context.Context, pool *pgxpool.Pool, file []byte) (map[string]handler.Handler, error) {
	set, err := handler.Parse("handlers.yaml", file)
	if err != nil {
		return nil, err
	}
	if err := set.Prepare(ctx, pool); err != nil {
		return nil, err
	}
	return set.Handlers(), nil
}

// handlers prepares a handlers file against the shop.
func (s *shop) handlers(t testing.TB, file string) map[string]handler.Handler {
	t.Helper()
	handlers, err := prepared(t.Context(), s.pool, []byte(file))
	require.NoError(t, err)
	return handlers
}

var (
	_ relay.Observer  = (*tally)(nil)
	_ worker.Observer = (*tally)(nil)
)
