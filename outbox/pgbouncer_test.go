package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

// pooled is the fixture seen through a transaction pooler: every transaction
// may meet another session.
func (f *fixture) pooled() *fixture {
	f.Helper()
	behind := *f
	behind.url = pgtest.WithDatabase(f, pgtest.PgBouncerURL(f), pgtest.Database(f, f.url))
	behind.pool = pgtest.Pool(f, behind.url, 40) // more than the pooler's sessions
	behind.ledger = pgtest.Open(f, behind.pool)
	return &behind
}

// life leads one order's tasks through everything that the ledger can do.
func (f *fixture) life(order string) error {
	schema := outbox.DefaultSchema
	at := time.Now().Add(time.Hour)
	err := pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) error {
		for _, bizType := range []string{"close", "remind", "survey"} {
			if _, err := schema.Schedule(f.ctx, tx, bizType, order, at, map[string]string{"order": order}); err != nil {
				return err
			}
		}
		if _, err := schema.Reschedule(f.ctx, tx, "remind", order, at.Add(-2*time.Hour)); err != nil {
			return err
		}
		_, err := schema.ScheduleIn(f.ctx, tx, "close", order, -time.Second, nil)
		return err
	})
	if err != nil {
		return err
	}
	batch, err := f.ledger.Claim(f.ctx, []bide.Window{{Level: 1, From: 0, To: 2 * time.Hour, Limit: 2}})
	if err != nil {
		return err
	}
	if err := f.ledger.Settle(f.ctx, batch.ID, claimedIDs(batch)); err != nil {
		return err
	}
	if err := f.work(); err != nil {
		return err
	}
	return pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) error {
		if _, err := schema.Cancel(f.ctx, tx, "survey", order); err != nil {
			return err
		}
		_, err := schema.CancelAll(f.ctx, tx, order)
		return err
	})
}

// work executes what is due, one task with an error, and does what else
// workers do.
func (f *fixture) work() error {
	e, err := f.ledger.LockDue(f.ctx, bide.Due{Types: []string{"close", "remind"}, Limit: 3})
	if err != nil {
		return err
	}
	if err := e.Limit(f.ctx); err != nil {
		return err
	}
	ids := taskIDs(e.Tasks)
	if len(ids) > 0 {
		e.Tasks = e.Tasks[1:]
	}
	if err := e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done)); err != nil || len(ids) == 0 {
		return err
	}
	if _, err := f.ledger.Retry(f.ctx, ids[:1], []string{"no"}, patientBackoff); err != nil {
		return err
	}
	if _, _, err := f.ledger.Reclaim(f.ctx, ids[0], 3); err != nil {
		return err
	}
	e, err = f.ledger.Lock(f.ctx, ids, true)
	if err != nil {
		return err
	}
	if err := e.Abort(f.ctx); err != nil {
		return err
	}
	for _, call := range []func() error{
		func() error { _, err := f.ledger.HonourRequests(f.ctx); return err },
		func() error { _, err := f.ledger.Recover(f.ctx, time.Hour); return err },
		func() error { _, _, err := f.ledger.Peek(f.ctx, ids); return err },
		func() error { _, err := f.ledger.GiveBack(f.ctx, ids, make([]time.Time, len(ids))); return err },
		func() error { _, err := f.ledger.Counts(f.ctx); return err },
		func() error { _, err := f.ledger.OldestOverdue(f.ctx); return err },
		func() error { _, err := f.ledger.Find(f.ctx, outbox.Filter{Limit: 3}); return err },
		func() error { _, err := f.ledger.Requeue(f.ctx, outbox.Filter{BizType: "none"}); return err },
		func() error { _, err := f.ledger.Diagnose(f.ctx); return err },
		func() error { return f.ledger.Ping(f.ctx) },
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

func TestEverythingWorksBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	direct := setUp(t)
	f := direct.pooled()
	const orders, clients = 120, 12
	var group errgroup.Group
	for c := range clients {
		group.Go(func() error {
			for order := c; order < orders; order += clients {
				if err := f.life(fmt.Sprint(order)); err != nil {
					return fmt.Errorf("order %d: %w", order, err)
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.NoError(t, f.ledger.KeepHouse(f.ctx, 30*day))
	for f.lockAllDue() > 0 {
	}
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.delay_task WHERE run_at <= now()"))
	audit, err := f.ledger.Audit(f.ctx)
	require.NoError(t, err)
	for _, a := range audit {
		require.Zero(t, a.Broken, "%s: %v", a.Claim, a.Examples)
	}
	require.Equal(t, 3*orders, value[int](f, "SELECT count(*) FROM bide.task"), "every task is somewhere")
	direct.requireNoTraces()
}

func (f *fixture) lockAllDue() int {
	f.Helper()
	e := f.lockDue(bide.Due{Types: []string{"close", "remind", "survey"}, Limit: 100})
	require.NoError(f, e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done)))
	return len(e.Tasks)
}

// requireNoTraces looks for what the pooler's sessions could have kept.
func (f *fixture) requireNoTraces() {
	f.Helper()
	pooled := f.pooled()
	defaults := f.settings()
	var open []pgx.Tx
	sessions := map[int]bool{}
	for range 15 { // as many sessions at once as there are
		tx := pooled.begin()
		var pid int
		require.NoError(f, tx.QueryRow(f.ctx, "SELECT pg_backend_pid()").Scan(&pid))
		sessions[pid] = true
		rows, err := tx.Query(f.ctx, settingsSQL)
		require.NoError(f, err)
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(f, err)
		require.Equal(f, defaults, got)
		var prepared int
		require.NoError(f, tx.QueryRow(f.ctx, "SELECT count(*) FROM pg_prepared_statements WHERE name <> ''").Scan(&prepared))
		require.Zero(f, prepared)
		open = append(open, tx)
	}
	require.Greater(f, len(sessions), 1)
	for _, tx := range open {
		require.NoError(f, tx.Rollback(f.ctx))
	}
}

const settingsSQL = `SELECT name || '=' || setting FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',
	'idle_in_transaction_session_timeout', 'enable_seqscan', 'enable_bitmapscan', 'jit', 'plan_cache_mode',
	'default_transaction_isolation') ORDER BY name`

func (f *fixture) settings() []string {
	f.Helper()
	return values[string](f, settingsSQL)
}

// The services' settings are local to their transactions, so that they leave
// no trace in a session that an application gets next.
func TestSettingsEndWithTheirTransaction(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	single := *f
	single.pool = pgtest.Pool(t, f.url, 3)
	single.ledger = pgtest.Open(t, single.pool)
	before := single.settings()
	require.NoError(t, single.life("1"))
	require.NoError(t, single.ledger.KeepHouse(f.ctx, 30*day))
	for range 3 {
		require.Equal(t, before, single.settings())
	}
	// The handler's statements are planned as its owner has set the planner.
	id := f.put("due", -time.Minute, bide.Waiting)
	for _, e := range []*outbox.Execution{single.lock(id), single.lockDue(bide.Due{Types: []string{"other"}, Limit: 1})} {
		rows, err := e.Conn().Query(f.ctx, "SELECT setting FROM pg_settings WHERE name IN ('enable_seqscan', 'enable_bitmapscan', 'jit') ORDER BY name")
		require.NoError(t, err)
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Equal(t, []string{"on", "on", "on"}, got)
		require.NoError(t, e.Abort(f.ctx))
	}
}
