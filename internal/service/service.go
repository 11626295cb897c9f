// Package service is the frame of a Bide service: arguments, signals, logging
// and the loops that every service runs beside its own.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bide-mq/bide/internal/admin"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/outbox"
)

// Exit codes.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
)

// Command is a service's entry point.
type Command struct {
	// Name and Summary open the help.
	Name, Summary string
	// Spec is the configuration whose variables the help lists.
	Spec any
	// Listen returns the address that the health check asks.
	Listen func() string
	// Run loads the configuration and works until ctx ends.
	Run func(ctx context.Context) error
}

// Main runs the command and returns the exit code.
func (c Command) Main(args []string) int {
	switch {
	case len(args) == 0:
		return c.run()
	case len(args) == 1 && args[0] == "healthcheck":
		return report(admin.Check(context.Background(), c.Listen()))
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h" || args[0] == "help"):
		c.help(os.Stdout)
		return ExitOK
	case len(args) == 1 && args[0] == "--version":
		_, _ = fmt.Fprintln(os.Stdout, c.Name, Version())
		return ExitOK
	default:
		_, _ = fmt.Fprintf(os.Stderr, "%s: unknown argument %q; see %s --help\n", c.Name, args[0], c.Name)
		return ExitUsage
	}
}

// run works until SIGTERM or SIGINT. A second signal ends the process at once.
func (c Command) run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop)
	err := c.Run(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) { // asked to end before it had begun
		return ExitOK
	}
	return report(err)
}

func report(err error) int {
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return ExitFailure
	}
	return ExitOK
}

func (c Command) help(out io.Writer) {
	_, _ = fmt.Fprintf(out, `%s

Usage:
  %[2]s              run until SIGTERM
  %[2]s healthcheck  exit 0 if the service on BIDE_LISTEN is alive, 1 if not
  %[2]s --version

Exit codes: 0 ended as asked, 1 failure, 2 wrong usage.

Variables, their defaults and meaning:
`, c.Summary, c.Name)
	config.Usage(out, c.Spec)
}

// Logger writes to stderr as configured.
func Logger(cfg config.Service) *slog.Logger {
	level, _ := cfg.Level() // validated with the configuration
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(withoutRepeats(slog.NewJSONHandler(os.Stderr, options)))
	}
	return slog.New(withoutRepeats(slog.NewTextHandler(os.Stderr, options)))
}

// OpenLedger connects to the ledger, trying for as long as the database does
// not answer, and migrates it if asked to. When ctx ends first it returns
// ctx.Err(). Close the pool at the end.
func OpenLedger(ctx context.Context, cfg config.Database, migrate bool, conns int, log *slog.Logger) (*pgxpool.Pool, *outbox.Ledger, error) {
	poolConfig, err := outbox.PoolConfig(cfg.DatabaseURL, conns)
	if err != nil {
		return nil, nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the database: %w", err)
	}
	for {
		ledger, err := openOnce(ctx, pool, outbox.Schema(cfg.Schema), migrate)
		switch {
		case err == nil:
			return pool, ledger, nil
		case ctx.Err() != nil:
			pool.Close()
			return nil, nil, ctx.Err()
		case !outbox.Unreachable(err):
			pool.Close()
			return nil, nil, err
		}
		log.WarnContext(ctx, "the database does not answer yet", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func openOnce(ctx context.Context, pool *pgxpool.Pool, schema outbox.Schema, migrate bool) (*outbox.Ledger, error) {
	if migrate {
		err := pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return migrateOn(ctx, conn.Conn(), schema) })
		if err != nil {
			return nil, err
		}
	}
	return outbox.Open(ctx, pool, schema)
}

func migrateOn(ctx context.Context, conn *pgx.Conn, schema outbox.Schema) error {
	_, err := outbox.Migrate(ctx, conn, schema)
	return err
}

// About is what a service says of itself when it starts, for its log.
func About(broker config.Broker, ledger *outbox.Ledger, listener net.Listener) []any {
	return []any{
		"version", Version(), "ledger", ledger.ID().String(), "schema", string(ledger.Schema()),
		"broker", broker.Broker, "listen", listener.Addr().String(),
	}
}

// Ready returns the readiness check of a service: the ledger answers, and the
// broker session, if there is to be one, is up.
func Ready(ledger *outbox.Ledger, session func() error) func(context.Context) error {
	return func(ctx context.Context) error {
		if ledger.Ping(ctx) != nil {
			return errors.New("the ledger does not answer")
		}
		return session()
	}
}
