// Command producer relays tasks from the ledger to the broker.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide/internal/admin"
	"github.com/bide-mq/bide/internal/broker"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/internal/relay"
	"github.com/bide-mq/bide/internal/service"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/outbox"
)

func main() {
	os.Exit(service.Command{
		Name: "producer", Spec: &config.Producer{}, Run: run,
		Summary: "producer relays delayed tasks from the ledger in PostgreSQL to the message broker.",
		Listen: func() string {
			cfg, _ := config.LoadProducer() // only the address matters here
			return cfg.Listen
		},
	}.Main(os.Args[1:]))
}

// conns serves the claims, up to a handful of batches being settled, and the
// measurements.
const conns = 8

func run(ctx context.Context) error {
	cfg, err := config.LoadProducer()
	if err := errors.Join(err, broker.Validate(cfg.Broker)); err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	log := service.Logger(cfg.Service)
	pool, ledger, err := service.OpenLedger(ctx, cfg.Database, cfg.Migrate, conns, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	registry := admin.NewRegistry()
	server := &admin.Server{Registry: registry}
	if server.Listener, err = admin.Listen(ctx, cfg.Listen); err != nil {
		return err
	}
	publisher, err := broker.NewPublisher(cfg.Broker, ledger.ID(), log)
	if err != nil {
		return err
	}

	server.Ready = service.Ready(ledger, broker.Up(nil))
	loops, ctx := errgroup.WithContext(ctx)
	if publisher == nil {
		log.InfoContext(ctx, "no broker: the consumers' sweep does everything, the producer has nothing to do")
	} else {
		server.Ready = service.Ready(ledger, broker.Up(publisher.Session))
		admin.WatchSession(registry, publisher.Session)
		metrics := admin.NewRelayMetrics(registry)
		loops.Go(func() error { return publish(ctx, cfg, ledger, publisher, metrics, log) })
	}
	loops.Go(func() error { return server.Run(ctx) })
	loops.Go(func() error { return admin.NewLedgerGauges(registry, ledger, log).Run(ctx) })
	log.InfoContext(ctx, "producer started", service.About(cfg.Broker, ledger, server.Listener)...)
	err = loops.Wait()
	log.InfoContext(ctx, "producer stopped")
	return err
}

// publish runs the relay and the session it publishes through.
func publish(ctx context.Context, cfg *config.Producer, ledger *outbox.Ledger,
	publisher broker.Publisher, metrics *admin.RelayMetrics, log *slog.Logger,
) error {
	if err := publisher.Open(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	plan, err := levels.NewPlan(publisher.Capabilities(), cfg.Slack)
	if err != nil {
		return fmt.Errorf("delay levels: %w", err)
	}
	r := relay.New(relay.Config{
		Ledger: ledger.ID(), Poll: cfg.PollInterval, Lease: cfg.BatchLease, Drain: cfg.ShutdownTimeout * 8 / 10,
	}, ledger, publisher, plan, metrics, log)
	loops, ctx := errgroup.WithContext(ctx)
	// The session must outlive the relay's last batches.
	session, closeSession := context.WithCancel(context.WithoutCancel(ctx))
	loops.Go(func() error { return publisher.Run(session) })
	loops.Go(func() error {
		defer closeSession()
		return r.Run(ctx)
	})
	return loops.Wait()
}
