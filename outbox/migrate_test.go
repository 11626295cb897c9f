package outbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

// migrate migrates as a service does, over a connection of its own.
func migrate(ctx context.Context, url string, schema outbox.Schema) (int, error) {
	cfg, err := outbox.PoolConfig(url, 1)
	if err != nil {
		return 0, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	return outbox.Migrate(ctx, conn, schema)
}

// A deployment starts many processes at once, on a database that none of them
// has seen, directly or through a pooler that hands sessions about.
func TestManyProcessesMigrateAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	const processes = 10
	for name, serverURL := range map[string]string{"directly": pgtest.ServerURL(t), "through a pooler": pgtest.PgBouncerURL(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), hung)
			defer cancel()
			database := pgtest.NewDatabase(t)
			url := pgtest.WithDatabase(t, serverURL, pgtest.Database(t, database))
			for range 3 { // the second and third time there is nothing to do
				var group errgroup.Group
				for range processes {
					group.Go(func() error {
						version, err := migrate(ctx, url, outbox.DefaultSchema)
						if err == nil && version == 0 {
							t.Error("no version")
						}
						return err
					})
				}
				require.NoError(t, group.Wait())
			}
			pool := pgtest.Pool(t, database, 2)
			pgtest.Open(t, pool)
			var ledgers, locks int
			require.NoError(t, pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM bide.ledger),
				(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).
				Scan(&ledgers, &locks))
			require.Equal(t, 1, ledgers)
			require.Zero(t, locks, "a lock left behind in a pooler's session would stop the next migration")
		})
	}
}

// A migration that fails leaves nothing behind, no lock either.
func TestAFailedMigrationLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	url := pgtest.NewDatabase(t)
	pool := pgtest.Pool(t, url, 2)
	conn, err := pool.Acquire(ctx)
	require.NoError(t, err)
	defer conn.Release()
	_, err = pool.Exec(ctx, "CREATE SCHEMA bide; CREATE TABLE bide.relay_batch ()")
	require.NoError(t, err)
	_, err = outbox.Migrate(ctx, conn.Conn(), outbox.DefaultSchema)
	require.ErrorContains(t, err, "relay_batch")
	require.ErrorContains(t, err, "migrate schema bide")
	var left int
	require.NoError(t, pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'bide'::regnamespace)
		+ (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&left))
	require.Equal(t, 1, left, "the table that was in the way")

	_, err = pool.Exec(ctx, "DROP TABLE bide.relay_batch")
	require.NoError(t, err)
	_, err = outbox.Migrate(ctx, conn.Conn(), outbox.DefaultSchema)
	require.NoError(t, err, "the same connection is good for another try")
}

func TestTwoLedgersInOneDatabase(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const other outbox.Schema = "_delayed_2"
	version, err := migrate(f.ctx, f.url, other)
	require.NoError(t, err)
	require.NotZero(t, version)
	second, err := outbox.Open(f.ctx, f.pool, other)
	require.NoError(t, err)
	require.Equal(t, other, second.Schema())
	require.NotEqual(t, f.ledger.ID(), second.ID(), "on one broker they never take each other's messages")

	require.NoError(t, pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) error {
		_, err := other.ScheduleIn(f.ctx, tx, closeOrder, "1", -1, nil)
		return err
	}))
	require.Zero(t, f.live("1"))
	require.Empty(t, f.found(due()))
	e, err := second.LockDue(f.ctx, due())
	require.NoError(t, err)
	require.NoError(t, e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done)))
	require.Equal(t, 1, value[int](f, "SELECT count(*) FROM _delayed_2.delay_task_history"))
	require.NoError(t, second.KeepHouse(f.ctx, day))

	again, err := outbox.Open(f.ctx, f.pool, other)
	require.NoError(t, err)
	require.Equal(t, second.ID(), again.ID(), "made once")
}

func TestSchemaNames(t *testing.T) {
	t.Parallel()
	for _, good := range []outbox.Schema{"bide", "a", "_", "shop_2", "x23456789012345678901234567890123456789012345678901234567890123"} {
		require.NoError(t, good.Validate())
	}
	url := pgtest.NewDatabase(t)
	pool := pgtest.Pool(t, url, 1)
	for _, bad := range []outbox.Schema{
		"", "Bide", "2bide", "bide-2", "bi de", "pg_bide", "bide;DROP TABLE x", `"bide"`, "bide.x", "büde",
		"x234567890123456789012345678901234567890123456789012345678901234",
	} {
		require.ErrorContains(t, bad.Validate(), "schema ")
		_, err := migrate(t.Context(), url, bad)
		require.Equal(t, bad.Validate(), err)
		_, err = outbox.Open(t.Context(), pool, bad)
		require.Equal(t, bad.Validate(), err)
	}
}

func TestOpenGoesByTheLedgersVersion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := pgtest.NewDatabase(t)
	pool := pgtest.Pool(t, url, 2)
	open := func() error {
		_, err := outbox.Open(ctx, pool, outbox.DefaultSchema)
		return err
	}
	set := func(version int) {
		_, err := pool.Exec(ctx, "UPDATE bide.schema_version SET version = $1", version)
		require.NoError(t, err)
	}
	require.ErrorIs(t, open(), outbox.ErrNotMigrated, "no schema")
	_, err := pool.Exec(ctx, "CREATE SCHEMA bide")
	require.NoError(t, err)
	require.ErrorIs(t, open(), outbox.ErrNotMigrated, "an empty schema")
	require.ErrorContains(t, open(), "bide migrate")

	pgtest.Migrate(t, url, outbox.DefaultSchema)
	require.NoError(t, open())
	have, want, err := outbox.Version(ctx, pool, outbox.DefaultSchema)
	require.NoError(t, err)
	require.Equal(t, want, have)

	set(want + 1)
	require.NoError(t, open(), "the old build runs on while the new one is rolled out")
	_, err = migrate(ctx, url, outbox.DefaultSchema)
	require.NoError(t, err, "and starts again beside it")
	have, _, err = outbox.Version(ctx, pool, outbox.DefaultSchema)
	require.NoError(t, err)
	require.Equal(t, want+1, have, "without undoing anything")

	set(want - 1)
	require.ErrorIs(t, open(), outbox.ErrNotMigrated)
	require.ErrorContains(t, open(), "version 1, this build needs 2")
}
