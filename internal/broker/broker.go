// Package broker makes the driver that the configuration asks for. It is the
// one place that knows every driver by name.
package broker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/rabbit"
	"github.com/bide-mq/bide/rocket"
)

// Publisher is a driver's sending side with its session's supervisor.
type Publisher interface {
	bide.Publisher
	// Open finds out what the broker can do, for as long as that takes. Before
	// it has returned, only Session may be called. It returns nil, without
	// having found out, when ctx ends.
	Open(ctx context.Context) error
	// Run keeps the session until ctx ends.
	Run(ctx context.Context) error
}

// rabbitPublisher is what its configuration says, so there is nothing to ask.
type rabbitPublisher struct{ *rabbit.Publisher }

func (rabbitPublisher) Open(context.Context) error { return nil }

// Validate finds what only the driver knows to be wrong with a configuration
// that is sound otherwise, such as an URL or a certificate. It connects to
// nothing.
func Validate(cfg config.Broker) error {
	if !cfg.Sound() {
		return nil // its faults are reported already
	}
	anyLedger := bide.LedgerID{1}
	var err error
	switch cfg.Broker {
	case config.RabbitMQ:
		err = Rabbit(cfg, anyLedger).WithDefaults().Validate()
	case config.RocketMQ:
		err = Rocket(cfg, anyLedger).WithDefaults().Validate()
	}
	if err == nil {
		return nil
	}
	name := cfg.Broker + ": "
	return errors.New(name + strings.ReplaceAll(err.Error(), "\n", "\n"+name))
}

// NewPublisher returns the configured driver, nil for none.
func NewPublisher(cfg config.Broker, ledger bide.LedgerID, log *slog.Logger) (Publisher, error) {
	switch cfg.Broker {
	case config.None:
		return nil, nil
	case config.RocketMQ:
		return &rocketPublisher{cfg: Rocket(cfg, ledger), log: log}, nil
	}
	p, err := rabbit.NewPublisher(Rabbit(cfg, ledger), log)
	if err != nil {
		return nil, err
	}
	return rabbitPublisher{p}, nil
}

// Consuming tunes a subscriber.
type Consuming struct {
	Channels, Prefetch int
	Drain              time.Duration
}

// NewSubscriber returns the configured driver, nil for none.
func NewSubscriber(cfg config.Broker, ledger bide.LedgerID, tune Consuming, log *slog.Logger) (bide.Subscriber, error) {
	switch cfg.Broker {
	case config.None:
		return nil, nil
	case config.RocketMQ:
		c := Rocket(cfg, ledger)
		c.DrainTimeout = tune.Drain
		return rocket.NewSubscriber(c, log)
	}
	c := Rabbit(cfg, ledger)
	c.Consumers, c.Prefetch, c.DrainTimeout = tune.Channels, tune.Prefetch, tune.Drain
	return rabbit.NewSubscriber(c, log)
}

// Rabbit translates the environment into the RabbitMQ driver's configuration.
func Rabbit(cfg config.Broker, ledger bide.LedgerID) rabbit.Config {
	return rabbit.Config{
		URL: cfg.RabbitURL, ManagementURL: cfg.RabbitManagement,
		TLS: rabbit.TLS{
			CAFile: cfg.RabbitCAFile, CertFile: cfg.RabbitCertFile,
			KeyFile: cfg.RabbitKeyFile, ServerName: cfg.RabbitServerName,
		},
		Prefix: cfg.RabbitPrefix, Ledger: ledger, QueueType: rabbit.QueueType(cfg.RabbitQueueType),
		Tiers: cfg.Tiers(), Lead: cfg.DriverLead(), Slack: cfg.Slack,
	}
}

// Up returns a readiness check of a session; always ready without a broker.
func Up(session func() bide.Session) func() error {
	return func() error {
		if session == nil || session().State == bide.SessionUp {
			return nil
		}
		return errors.New("the broker session is " + session().State.String())
	}
}
