package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/rocket"
)

// Rocket translates the environment into the RocketMQ driver's configuration.
func Rocket(cfg config.Broker, ledger bide.LedgerID) rocket.Config {
	return rocket.Config{
		NameServers: cfg.NameServers(), AccessKey: cfg.RocketAccessKey, SecretKey: cfg.RocketSecretKey, TLS: cfg.RocketTLS,
		Namespace: cfg.RocketNamespace, Cluster: cfg.RocketCluster, Prefix: cfg.RocketPrefix, Ledger: ledger, Queues: cfg.RocketQueues,
		Mode: rocket.Mode(cfg.RocketMode), Version: cfg.RocketVersion, Table: cfg.RocketLevels, MaxDelay: cfg.RocketMaxDelay,
		Horizon: cfg.RocketHorizon, Lead: cfg.DriverLead(), Slack: cfg.Slack,
	}
}

// rocketPublisher is a RocketMQ publisher that does not know yet what the
// brokers can do. Until Open has found out, its session is down.
type rocketPublisher struct {
	cfg   rocket.Config
	log   *slog.Logger
	inner atomic.Pointer[rocket.Publisher]
}

// askAgain is the pause between two attempts to ask the brokers what they are.
const askAgain = time.Second

// Open asks the brokers what they are, for as long as none answers. It returns
// an error when they cannot do what is configured, and nil when ctx ends.
func (p *rocketPublisher) Open(ctx context.Context) error {
	for {
		facts, err := rocket.Discover(ctx, p.cfg)
		if err == nil {
			p.log.InfoContext(ctx, "asked the brokers what they are", "facts", facts.String())
			inner, err := rocket.NewPublisher(p.cfg, facts, p.log)
			p.inner.Store(inner)
			return err
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped, as asked
		}
		if errors.As(err, new(*bide.Fault)) {
			return err
		}
		p.log.WarnContext(ctx, "ask the brokers what they are", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(askAgain):
		}
	}
}

func (p *rocketPublisher) Capabilities() bide.Capabilities { return p.inner.Load().Capabilities() }

func (p *rocketPublisher) Run(ctx context.Context) error { return p.inner.Load().Run(ctx) }

func (p *rocketPublisher) Publish(ctx context.Context, sends []bide.Send) []bide.Outcome {
	return p.inner.Load().Publish(ctx, sends)
}

func (p *rocketPublisher) Session() bide.Session {
	if inner := p.inner.Load(); inner != nil {
		return inner.Session()
	}
	return bide.Session{State: bide.SessionDown}
}
