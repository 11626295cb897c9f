package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

// A server that has restarted leaves as many dead connections in the pool as
// there were; they cost one attempt together.
func TestDeadConnectionsCostOneAttempt(t *testing.T) {
	t.Parallel()
	for name, attempt := range map[string]func(f *fixture) error{
		"execution": func(f *fixture) error {
			e, err := f.ledger.Lock(f.ctx, nil, false)
			if err != nil {
				return err
			}
			return e.Abort(f.ctx)
		},
		"statement": func(f *fixture) error { _, err := f.ledger.Recover(f.ctx, time.Minute); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			var idle []*pgxpool.Conn
			for range 8 {
				conn, err := f.pool.Acquire(f.ctx)
				require.NoError(t, err)
				idle = append(idle, conn)
			}
			for _, conn := range idle {
				conn.Release()
			}
			onServer(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+pgtest.Database(t, f.url)+"'")
			if err := attempt(f); err != nil { // a pool that has rested asks before it gives a connection out
				t.Log(err)
			}
			require.NoError(t, attempt(f))
		})
	}
}

// A primary that became a replica, or was made read-only, goes on answering.
// Its connections are not used again.
func TestAReadOnlySessionIsGivenUp(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.put("1", time.Hour, bide.Waiting)
	pool := pgtest.Pool(t, f.url, 1)
	ledger := pgtest.Open(t, pool)
	_, err := pool.Exec(f.ctx, "SET default_transaction_read_only = on")
	require.NoError(t, err)
	_, err = ledger.Claim(f.ctx, []bide.Window{{To: 2 * time.Hour, Limit: 1}})
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "25006", refused.Code)
	batch, err := ledger.Claim(f.ctx, []bide.Window{{To: 2 * time.Hour, Limit: 1}})
	require.NoError(t, err)
	require.Len(t, batch.Tasks, 1)
}

func TestConnectionsAreMadeToAServerThatTakesWrites(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.exec("ALTER DATABASE " + pgx.Identifier{pgtest.Database(t, f.url)}.Sanitize() + " SET default_transaction_read_only = on")
	ping := func(url string) error {
		return pgtest.Pool(t, url, 1).Ping(f.ctx)
	}
	err := ping(f.url)
	require.ErrorContains(t, err, "read only")
	require.True(t, outbox.Unreachable(err), "another server may take its place")
	require.NoError(t, ping(f.url+"&target_session_attrs=any"), "the URL has the last word")
}
