package integration

import (
	"context"
	_ "embed"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

//go:embed testdata/shop.sql
var shopSQL string

//go:embed testdata/place.sql
var placeSQL string

//go:embed testdata/verdict.sql
var verdictSQL string

// shop is an application and its database.
type shop struct {
	url    string
	pool   *pgxpool.Pool
	ledger *outbox.Ledger
}

// Settings of the shops' databases.
const (
	// patient lets an execution last: its limits follow from this one, and a
	// busy machine would exceed the usual ones.
	patient = "deadlock_timeout = '5s'"
	// usual is the server's default, for tests of who waits for whom.
	usual = "deadlock_timeout = '1s'"
	// careless spares the disk that all tests share: nobody crashes that server.
	careless = "synchronous_commit = off"
)

// newShop opens a shop on the shared server.
func newShop(t testing.TB, settings ...string) *shop {
	t.Helper()
	return newShopOn(t, pgtest.ServerURL(t), append([]string{patient, careless}, settings...)...)
}

// newShopOn opens a shop on another server, in a database with the settings
// given.
func newShopOn(t testing.TB, serverURL string, settings ...string) *shop {
	t.Helper()
	url := pgtest.NewDatabaseOn(t, serverURL)
	for _, setting := range settings {
		_, err := pgtest.Pool(t, url, 1).Exec(t.Context(), "ALTER DATABASE "+pgtest.Database(t, url)+" SET "+setting)
		require.NoError(t, err)
	}
	pgtest.Migrate(t, url, outbox.DefaultSchema)
	pool := pgtest.Pool(t, url, 20)
	_, err := pool.Exec(t.Context(), shopSQL)
	require.NoError(t, err)
	return &shop{url: url, pool: pool, ledger: pgtest.Open(t, pool)}
}

// order is one that was placed.
type order struct {
	id       int64
	deadline time.Time
}

func (o order) key() string { return fmt.Sprint(o.id) }

// place places n orders in one transaction, due after delay and then each step
// later than the one before.
func (s *shop) place(t testing.TB, n int, delay, step time.Duration) []order {
	t.Helper()
	orders, err := s.tryPlace(t.Context(), n, delay, step)
	require.NoError(t, err)
	require.Len(t, orders, n)
	return orders
}

func (s *shop) tryPlace(ctx context.Context, n int, delay, step time.Duration) ([]order, error) {
	rows, err := s.pool.Query(ctx, placeSQL, n, delay, step)
	if err != nil {
		return nil, err
	}
	var orders []order
	var o order
	_, err = pgx.ForEachRow(rows, []any{&o.id, &o.deadline, nil}, func() error {
		orders = append(orders, o)
		return nil
	})
	return orders, err
}

// tx runs one transaction of the application.
func (s *shop) tx(ctx context.Context, f func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, f)
}

// exec runs one statement of the application.
func (s *shop) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := s.pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// count runs a query that gives one number.
func (s *shop) count(t testing.TB, sql string, args ...any) int {
	t.Helper()
	n, err := s.tryCount(t.Context(), sql, args...)
	require.NoError(t, err)
	return n
}

func (s *shop) tryCount(ctx context.Context, sql string, args ...any) (n int, err error) {
	err = s.pool.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}

// await waits until the query that gives one number gives want. The database
// may fail meanwhile.
func (s *shop) await(t testing.TB, within time.Duration, want int, sql string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := s.tryCount(t.Context(), sql, args...)
		return err == nil && n == want
	}, within, 10*time.Millisecond, "never %d: %s", want, sql)
}

// awaitDone waits until the ledger has nothing left to do.
func (s *shop) awaitDone(t testing.TB, within time.Duration) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("left in the ledger: ", s.leftovers())
		}
	})
	s.await(t, within, 0, "SELECT count(*) FROM bide.delay_task WHERE status <> 'FAILED'")
}

// leftovers describes the live tasks.
func (s *shop) leftovers() (text string) {
	err := s.pool.QueryRow(context.Background(), `
		SELECT coalesce(string_agg(format('%s tasks %s, sent %s times, %s attempts, %s reclaims, due %s ago: %s',
		           n, status, sends, attempts, reclaims, overdue, left(last_error, 200)), '; '), 'nothing')
		  FROM (SELECT count(*) AS n, status, sends, attempts, reclaims, max(now() - run_at) AS overdue, max(last_error) AS last_error
		          FROM bide.delay_task GROUP BY status, sends, attempts, reclaims) AS d`).Scan(&text)
	if err != nil {
		return err.Error()
	}
	return text
}

// via counts the finished tasks that came this way.
func (s *shop) via(t testing.TB, via string) int {
	t.Helper()
	return s.count(t, "SELECT count(*) FROM bide.delay_task_history WHERE via = $1::bide.task_via", via)
}
