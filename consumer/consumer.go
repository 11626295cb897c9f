package consumer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/admin"
	"github.com/bide-mq/bide/internal/broker"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/internal/execute"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/service"
	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/outbox"
)

// What a handler in Go is made of.
type (
	// Task is what a handler sees of a ledger row.
	Task = bide.Task
	// Handler acts for one biz_type; see Func and InBatches.
	Handler = handler.Handler
	// Func is a handler that takes each task in a transaction alone.
	Func = handler.Func
	// Result is what a handler says of one task.
	Result = handler.Result
	// Verdict is the gist of a Result.
	Verdict = handler.Verdict
)

// The verdicts. Skipped is the zero value.
const (
	// Skipped: there was nothing to do.
	Skipped = handler.Skipped
	// Done: the handler acted.
	Done = handler.Done
	// Retry: try again after a back-off.
	Retry = handler.Retry
	// Locked: someone else holds what the task needs; try again in 100 ms.
	Locked = handler.Locked
)

// InBatches is f with up to n tasks a call, 1 to 1,000.
func InBatches(n int, f Func) Handler { return handler.InBatches(n, f) }

// Option adds to a consumer.
type Option func(*options)

type options struct {
	handlers map[string]Handler
	faults   []error
}

// WithHandler lets h act for bizType. Neither another option nor the handlers
// file may name the same type.
func WithHandler(bizType string, h Handler) Option {
	return func(o *options) {
		if err := handler.Check(bizType, h); err != nil {
			o.faults = append(o.faults, err)
		}
		if _, twice := o.handlers[bizType]; twice {
			o.faults = append(o.faults, fmt.Errorf("handler %q: given twice, want one", bizType))
		}
		o.handlers[bizType] = h
	}
}

// Main runs the consumer, configured by the environment and os.Args, until
// SIGTERM. It returns the exit code.
func Main(opts ...Option) int {
	o := options{handlers: map[string]Handler{}}
	for _, opt := range opts {
		opt(&o)
	}
	return service.Command{
		Name: "consumer", Spec: &config.Consumer{},
		Summary: "consumer executes delayed tasks at their time: those that the broker delivers, and those that the sweep finds overdue.",
		Run:     func(ctx context.Context) error { return run(ctx, o) },
		Listen: func() string {
			cfg, _ := config.LoadConsumer() // only the address matters here
			return cfg.Listen
		},
	}.Main(os.Args[1:])
}

func run(ctx context.Context, o options) error {
	cfg, err := config.LoadConsumer()
	if err := errors.Join(err, broker.Validate(cfg.Broker), errors.Join(o.faults...)); err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	log := service.Logger(cfg.Service)
	file, err := loadHandlers(cfg.HandlersFile, o.handlers)
	if err != nil {
		return err
	}
	// An execution may hold one connection and need another for its journal.
	pool, ledger, err := service.OpenLedger(ctx, cfg.Database, cfg.Migrate, 2*cfg.Executions+4, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	handlers, err := prepare(ctx, file, o.handlers, pool)
	if err != nil {
		return err
	}
	return serve(ctx, cfg, ledger, handlers, log)
}

// loadHandlers reads the handlers file. It may be missing where there are
// handlers in Go.
func loadHandlers(path string, inGo map[string]Handler) (*handler.Set, error) {
	file, err := handler.Load(path)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return file, err
	case len(inGo) > 0:
		return &handler.Set{}, nil
	default:
		return nil, fmt.Errorf("BIDE_HANDLERS_FILE=%q: %w", path, err)
	}
}

// prepare checks the file's handlers against the database and joins them with
// the ones in Go.
func prepare(ctx context.Context, file *handler.Set, inGo map[string]Handler, pool *pgxpool.Pool) (map[string]Handler, error) {
	if err := file.Prepare(ctx, pool); err != nil {
		return nil, fmt.Errorf("handlers:\n%w", err)
	}
	all := file.Handlers()
	for bizType := range inGo {
		if all[bizType] != nil {
			return nil, fmt.Errorf("handler %q: both in Go and in the handlers file: want one", bizType)
		}
	}
	maps.Copy(all, inGo)
	return all, nil
}

// serve runs the worker and what goes with it.
func serve(ctx context.Context, cfg *config.Consumer, ledger *outbox.Ledger, handlers map[string]Handler, log *slog.Logger) error {
	drain := cfg.ShutdownTimeout * 8 / 10
	subscriber, err := broker.NewSubscriber(cfg.Broker, ledger.ID(), broker.Consuming{
		Channels: cfg.Consumers, Prefetch: cfg.Prefetch, Drain: drain,
	}, log)
	if err != nil {
		return err
	}
	registry := admin.NewRegistry()
	server := &admin.Server{Registry: registry, Ready: service.Ready(ledger, broker.Up(nil))}
	if subscriber != nil {
		server.Ready = service.Ready(ledger, broker.Up(subscriber.Session))
		admin.WatchSession(registry, subscriber.Session)
	}
	if server.Listener, err = admin.Listen(ctx, cfg.Listen); err != nil {
		return err
	}
	executor := execute.New(ledger, handlers, outbox.Backoff{
		MaxAttempts: cfg.MaxAttempts, First: cfg.RetryFirst, Most: cfg.RetryMost,
	})
	w := worker.New(worker.Config{
		Ledger: ledger.ID(), Executions: cfg.Executions, BatchWait: cfg.BatchWait,
		SweepEvery: cfg.SweepEvery, Grace: cfg.SweepGrace, Drain: drain,
	}, ledger, executor, subscriber, admin.NewWorkerMetrics(registry), log)
	admin.WatchHeld(registry, w.Held)

	loops, ctx := errgroup.WithContext(ctx)
	loops.Go(func() error { return server.Run(ctx) })
	loops.Go(func() error { return admin.NewLedgerGauges(registry, ledger, log).Run(ctx) })
	loops.Go(func() error { return keepHouse(ctx, ledger, cfg.Retention, log) })
	loops.Go(func() error { return w.Run(ctx) })
	about := append(service.About(cfg.Broker, ledger, server.Listener), "handlers", slices.Sorted(maps.Keys(handlers)))
	log.InfoContext(ctx, "consumer started", about...)
	err = loops.Wait()
	log.InfoContext(ctx, "consumer stopped")
	return err
}

// houseEvery is the pause between two rounds of housekeeping.
const houseEvery = 10 * time.Minute

// keepHouse makes and drops history's partitions until ctx ends.
func keepHouse(ctx context.Context, ledger *outbox.Ledger, retention time.Duration, log *slog.Logger) error {
	tick := time.NewTicker(houseEvery)
	defer tick.Stop()
	for {
		if err := ledger.KeepHouse(ctx, retention); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "housekeeping: trying again later", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
