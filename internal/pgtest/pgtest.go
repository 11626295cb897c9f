// Package pgtest gives each test a ledger of its own on a real PostgreSQL
// server.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/outbox"
)

// patience bounds what happens around a test, so that a server in trouble is a
// message and not a hang.
const patience = 10 * time.Second

// ServerURL returns the superuser's URL of the test server.
func ServerURL(t testing.TB) string {
	t.Helper()
	return mustEnv(t, "BIDE_TEST_DATABASE_URL")
}

// PgBouncerURL returns the URL of a PgBouncer in transaction mode in front of
// the test server.
func PgBouncerURL(t testing.TB) string {
	t.Helper()
	return mustEnv(t, "BIDE_TEST_PGBOUNCER_URL")
}

func mustEnv(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	require.NotEmpty(t, value, "%s is not set: run the tests with `make test`, which starts the servers", name)
	return value
}

// NewDatabase makes an empty database that is dropped when the test ends, and
// returns its URL.
func NewDatabase(t testing.TB) string {
	t.Helper()
	return NewDatabaseOn(t, ServerURL(t))
}

// NewDatabaseOn is NewDatabase on another server.
func NewDatabaseOn(t testing.TB, serverURL string) string {
	t.Helper()
	return create(t, serverURL, "template1")
}

// Copy makes a copy of another database of the test server, to which nobody is
// connected, and returns its URL.
func Copy(t testing.TB, template string) string {
	t.Helper()
	return create(t, ServerURL(t), template)
}

func create(t testing.TB, serverURL, template string) string {
	t.Helper()
	name := "bide_test_" + randomHex(t)
	execute(t, serverURL, "CREATE DATABASE "+name+" TEMPLATE "+template)
	t.Cleanup(func() { execute(t, serverURL, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return WithDatabase(t, serverURL, name)
}

// WithDatabase returns the URL with another database in its path.
func WithDatabase(t testing.TB, rawURL, database string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	u.Path = "/" + database
	return u.String()
}

// Database returns the name of the database that the URL leads to.
func Database(t testing.TB, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	return u.Path[1:]
}

// Pool opens a pool of at most maxConns connections as the services do, closed
// when the test ends.
func Pool(t testing.TB, url string, maxConns int) *pgxpool.Pool {
	t.Helper()
	cfg, err := outbox.PoolConfig(url, maxConns)
	require.NoError(t, err)
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// closePool waits for connections that are still in use, but not for ever: a
// test that failed half-way may have kept one, and is to end with its message.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Errorf("%d connections were not given back to the pool", pool.Stat().AcquiredConns())
	}
}

// New makes a database with a migrated ledger in schema bide, and returns a
// pool on it.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	url := NewDatabase(t)
	Migrate(t, url, outbox.DefaultSchema)
	return Pool(t, url, 20)
}

// Open returns the ledger that New made.
func Open(t testing.TB, pool *pgxpool.Pool) *outbox.Ledger {
	t.Helper()
	ledger, err := outbox.Open(context.Background(), pool, outbox.DefaultSchema)
	require.NoError(t, err)
	return ledger
}

// Migrate migrates the ledger in the schema.
func Migrate(t testing.TB, url string, schema outbox.Schema) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer conn.Close(ctx)
	_, err = outbox.Migrate(ctx, conn, schema)
	require.NoError(t, err)
}

func execute(t testing.TB, url, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	require.NoError(t, err)
}

func randomHex(t testing.TB) string {
	t.Helper()
	var b [6]byte
	_, err := rand.Read(b[:])
	require.NoError(t, err)
	return hex.EncodeToString(b[:])
}
