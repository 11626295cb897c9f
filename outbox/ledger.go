package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bide-mq/bide"
)

// Ledger is the services' side: what relays, workers and operators do. It is
// safe for concurrent use.
type Ledger struct {
	pool   *pgxpool.Pool
	schema Schema
	id     bide.LedgerID
	q      queries
	limits limits
}

// limits are the time-outs of an executing transaction, in milliseconds.
type limits struct{ statement, idle int64 }

// Open finds the ledger in the schema. The pool should be made from
// [PoolConfig]. It is an error if the ledger's version is older than this
// build needs; a newer one is accepted, for the sake of rolling upgrades.
func Open(ctx context.Context, pool *pgxpool.Pool, schema Schema) (*Ledger, error) {
	if err := schema.Validate(); err != nil {
		return nil, err
	}
	have, want, err := Version(ctx, pool, schema)
	if err != nil {
		return nil, err
	}
	if have < want {
		return nil, fmt.Errorf("%w: schema %s has version %d, this build needs %d: run `bide migrate`", ErrNotMigrated, schema, have, want)
	}
	l := &Ledger{pool: pool, schema: schema}
	if l.q, err = schema.queries(); err != nil {
		return nil, err
	}
	if err := l.identify(ctx); err != nil {
		return nil, fmt.Errorf("read the ledger's identity: %w", err)
	}
	return l, nil
}

// ErrNotMigrated says that the ledger is missing or older than the build.
var ErrNotMigrated = errors.New("ledger not migrated")

// identify reads the ledger's id and derives the limits from the server's
// deadlock_timeout.
func (l *Ledger) identify(ctx context.Context) error {
	var id string
	var deadlock int64
	if err := l.pool.QueryRow(ctx, l.q["identify"]).Scan(&id, &deadlock); err != nil {
		return err
	}
	l.limits = limitsFor(deadlock)
	var err error
	l.id, err = bide.ParseLedgerID(id)
	return err
}

// limitsFor splits nine tenths of the server's deadlock_timeout, in
// milliseconds, between the longest statement and the longest pause between
// two. Whoever has waited for deadlock_timeout becomes the deadlock's victim;
// a transaction that cannot last that long after a lock has been taken from it
// yields before the application is chosen.
func limitsFor(deadlock int64) limits {
	budget := deadlock * 9 / 10
	return limits{statement: max(budget*2/3, 1), idle: max(budget/3, 1)}
}

// ID returns the ledger's identity.
func (l *Ledger) ID() bide.LedgerID { return l.id }

// Schema returns the schema the ledger lives in.
func (l *Ledger) Schema() Schema { return l.schema }

// PoolConfig parses a connection string for a pool of at most maxConns
// connections. Errors never quote the string, which may hold a password.
//
// Statements are described once and then sent unnamed: every execution is
// planned for its own arguments, since a generic plan made while the table was
// small scans it whole later, and no state is left in the session, so that a
// transaction pooler such as PgBouncer may stand between. A context that ends
// cancels the statement and spares the session, so that its transaction is
// rolled back in good order.
//
// Unless the string says otherwise, connections are made to a server that takes
// writes (target_session_attrs=read-write), and given up when theirs does not
// any more: after a failover the former primary may go on answering.
func PoolConfig(connString string, maxConns int) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(connString)
	if missing, ok := errors.AsType[*fs.PathError](err); ok { // a certificate or a key
		return nil, fmt.Errorf("database URL: %w", missing)
	}
	if err != nil {
		return nil, errors.New("database URL: not a PostgreSQL connection string (postgres://user:password@host:port/database?sslmode=…)")
	}
	cfg.MaxConns = int32(maxConns) //nolint:gosec // bounded by the caller's configuration check
	cfg.MaxConnLifetime = 30 * time.Minute
	cfg.MaxConnLifetimeJitter = 5 * time.Minute
	cfg.HealthCheckPeriod = 15 * time.Second
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	if !strings.Contains(connString, "target_session_attrs") {
		cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	keep := cfg.ConnConfig.OnPgError
	cfg.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		return keep(conn, err) && err.Code != readOnlyTransaction
	}
	cfg.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelTimeout}
	}
	return cfg, nil
}

// readOnlyTransaction is the SQLSTATE of a write to a server that takes none.
const readOnlyTransaction = "25006"

// cancelTimeout is how long the server may take to cancel a statement before
// its session is given up.
const cancelTimeout = time.Second

// collect runs a query that needs no plan settings and returns its rows.
func collect[T any](ctx context.Context, l *Ledger, row pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, err := l.pool.Query(ctx, l.q[query], args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}

// inTx runs statements as one READ COMMITTED transaction in one round trip,
// whatever the database's default isolation is.
func (l *Ledger) inTx(ctx context.Context, queue func(b *pgx.Batch)) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(l.q["plan_by_index"])
	queue(b)
	b.Queue("COMMIT")
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	err = conn.SendBatch(ctx, b).Close()
	l.shed(conn)
	return err
}

// shed drops the pool's idle connections when one has died: most likely the
// server has restarted or moved, and each of them would cost another failure.
func (l *Ledger) shed(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		l.pool.Reset()
	}
}
