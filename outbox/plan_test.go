package outbox_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

// clear leaves statistics that say that the table is empty, taken when it was.
func (f *fixture) clear() {
	f.Helper()
	f.exec("ALTER TABLE bide.delay_task SET (autovacuum_enabled = off)")
	f.exec("VACUUM ANALYZE bide.delay_task")
}

// fill springs the trap: as many tasks as a morning may bring, and nobody has
// told the planner, or any session that has a plan.
func (f *fixture) fill(tasks int) {
	f.Helper()
	f.exec(`INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
		SELECT $1, n::text, now() + n * interval '1 hour' / $2 FROM generate_series(1, $2) AS n`, closeOrder, tasks)
	require.Zero(f, value[int](f, "SELECT reltuples::int FROM pg_class WHERE oid = 'bide.delay_task'::regclass"))
}

// node is a step of a plan.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Hit      int     `json:"Shared Hit Blocks"`
	Read     int     `json:"Shared Read Blocks"`
	Time     float64 `json:"Actual Total Time"`
	Plans    []node  `json:"Plans"`
}

// scans lists how the plan reads the live table.
func (n node) scans() []string {
	var all []string
	if n.Relation == "delay_task" && strings.Contains(n.Type, "Scan") {
		all = append(all, n.Type)
	}
	for _, p := range n.Plans {
		all = append(all, p.scans()...)
	}
	return all
}

// explain runs one of the loops' statements as they do, without its effect.
func (f *fixture) explain(setting, name string, args ...any) node {
	f.Helper()
	tx := f.begin()
	defer func() { require.NoError(f, tx.Rollback(f.ctx)) }()
	if setting != "" {
		_, err := tx.Exec(f.ctx, f.statement(setting))
		require.NoError(f, err)
	}
	var plans []byte
	require.NoError(f, tx.QueryRow(f.ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+f.statement(name), args...).Scan(&plans))
	var got []struct{ Plan node }
	require.NoError(f, json.Unmarshal(plans, &got))
	return got[0].Plan
}

func (f *fixture) statement(name string) string {
	f.Helper()
	sql, err := outbox.DefaultSchema.Statement(name)
	require.NoError(f, err)
	require.NotEmpty(f, sql, name)
	return sql
}

// windowArgs are a claim's arguments for the 19 windows of a broker with 18
// levels, each a quarter of a second long.
func windowArgs() []any {
	var levels []int
	var from, to []int64
	for i := range 19 {
		levels = append(levels, i)
		from = append(from, int64(i)*200_000_000)
		to = append(to, int64(i)*200_000_000+250_000)
	}
	return []any{levels, from, to, slices.Repeat([]int{256}, len(levels))}
}

func TestStatementsGoByIndexWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const tasks = 100_000
	f.clear()
	f.fill(tasks)
	f.exec("UPDATE bide.delay_task SET status = 'SENT', fire_at = now() - interval '1 minute' WHERE id <= 500")
	f.exec("UPDATE bide.delay_task SET status = 'FAILED' WHERE id BETWEEN 501 AND 600")
	ids := values[int64](f, "SELECT id FROM bide.delay_task WHERE id <= 200")
	f.exec("INSERT INTO bide.delay_task_request (task_id) SELECT unnest($1::bigint[])", ids[:10])
	f.exec("INSERT INTO bide.relay_batch (claimed_at, ids) VALUES (now() - interval '1 hour', $1)", ids)
	times := values[time.Time](f, "SELECT run_at FROM bide.delay_task WHERE id <= 200 ORDER BY id")
	texts := make([]string, len(ids))
	results := slices.Repeat([]string{"DONE"}, len(ids))
	epoch := time.Unix(0, 0)
	for _, tt := range []struct {
		setting, name string
		args          []any
		most          int // buffers
	}{
		{"plan_by_index", "claim", windowArgs(), 2_000},
		{"plan_by_index", "claim", []any{[]int{1}, []int64{0}, []int64{4e9}, []int{500}}, 25_000},
		{"plan_by_index", "settle", []any{int64(1), ids}, 20_000},
		{"plan_by_index", "recover", []any{time.Minute}, 20_000},
		{"plan_by_index", "give_back", []any{ids, times}, 20_000},
		{"plan_by_index", "peek", []any{ids}, 2_000},
		{"plan_by_index", "lock_due", []any{[]string{closeOrder}, epoch, epoch, time.Second, 200}, 5_000},
		{"plan_by_index", "overdue", []any{[]string{closeOrder}, epoch, epoch, time.Second, 200}, 2_000},
		{"plan_by_index", "retry", []any{ids, texts, 10, time.Second, time.Minute}, 25_000},
		{"plan_by_index", "reclaim", []any{ids[0], 3, time.Second}, 500},
		{"plan_by_index", "honour", nil, 2_000},
		{"plan_by_index", "requeue", []any{int64(0), "", ""}, 20_000},
		{"plan_by_index", "oldest_overdue", nil, 500},
		// Between an application's statements, under its own settings.
		{"", "lock", []any{ids}, 5_000},
		{"", "finish", []any{ids, times, results, texts, "sweep"}, 20_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := f.explain(tt.setting, tt.name, tt.args...)
			t.Logf("%.1f ms, %d buffers, %v", plan.Time, plan.Hit+plan.Read, plan.scans())
			require.NotEmpty(t, plan.scans())
			require.NotContains(t, plan.scans(), "Seq Scan")
			require.Less(t, plan.Hit+plan.Read, tt.most)
		})
	}
}

// Sessions live for long: what they prepared, and what the functions cached,
// dates from when the table was empty.
func TestSessionsOutliveTheirFirstPlans(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	session, err := f.pool.Acquire(f.ctx)
	require.NoError(t, err)
	defer session.Release()
	use := func(tx pgx.Tx, bizID string, at time.Time) {
		schema := outbox.DefaultSchema
		for _, at := range []time.Time{at, at, at.Add(time.Hour)} {
			_, err := schema.Schedule(f.ctx, tx, "a", bizID, at, nil)
			require.NoError(t, err)
		}
		_, err := schema.Reschedule(f.ctx, tx, "a", bizID, at)
		require.NoError(t, err)
		_, err = schema.Cancel(f.ctx, tx, "a", bizID)
		require.NoError(t, err)
		_, err = schema.CancelAll(f.ctx, tx, bizID)
		require.NoError(t, err)
	}
	scans := func(tx pgx.Tx) (sequential, byIndex int) {
		require.NoError(t, tx.QueryRow(f.ctx, `SELECT sum(seq_scan), sum(idx_scan) FROM pg_stat_xact_user_tables
			WHERE relid = 'bide.delay_task'::regclass`).Scan(&sequential, &byIndex))
		return sequential, byIndex
	}
	f.clear()
	at := f.now().Add(time.Hour)
	require.NoError(t, pgx.BeginFunc(f.ctx, session, func(tx pgx.Tx) error {
		for range 10 {
			use(tx, "0", at)
		}
		return nil
	}))
	f.fill(20_000)
	require.NoError(t, pgx.BeginFunc(f.ctx, session, func(tx pgx.Tx) error {
		sequentialBefore, byIndexBefore := scans(tx)
		begun := time.Now()
		use(tx, "0", at)
		took := time.Since(begun)
		sequential, byIndex := scans(tx)
		t.Logf("%s, %d scans by index", took, byIndex-byIndexBefore)
		require.Zero(t, sequential-sequentialBefore)
		require.NotZero(t, byIndex-byIndexBefore)
		return nil
	}))
}

func TestClaimsThatBeganOnAnEmptyTableStayFast(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ledger := pgtest.Open(t, pgtest.Pool(t, f.url, 1)) // one session
	windows := []bide.Window{}
	for i := range 19 {
		from := time.Duration(i) * 200 * time.Second
		windows = append(windows, bide.Window{Level: i, From: from, To: from + 250*time.Millisecond, Limit: 256})
	}
	f.clear()
	for range 10 { // more than it takes to settle on a generic plan
		_, err := ledger.Claim(f.ctx, windows)
		require.NoError(t, err)
	}
	f.fill(100_000)
	var took []time.Duration
	for range 5 {
		begun := time.Now()
		_, err := ledger.Claim(f.ctx, windows)
		require.NoError(t, err)
		took = append(took, time.Since(begun))
	}
	t.Log(took)
	require.Less(t, slices.Min(took), time.Second, "a scan of the whole table for each window takes 18 s")
}

// A long transaction keeps dead entries in the indexes. Windows read past
// none of them; a scan from the beginning of time reads them all.
func TestClaimsUnderAnOldSnapshotReadLittle(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	old, err := f.pool.BeginTx(f.ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer old.Rollback(f.ctx) //nolint:errcheck // it has only read
	_, err = old.Exec(f.ctx, "SELECT count(*) FROM bide.delay_task")
	require.NoError(t, err)

	f.exec("ALTER TABLE bide.delay_task SET (autovacuum_enabled = off)")
	const finished = 30_000
	f.exec(`INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
		SELECT $1, 'old' || n, now() - interval '1 minute' - n * interval '1 ms' FROM generate_series(1, $2) AS n`, closeOrder, finished)
	f.exec("UPDATE bide.delay_task SET status = 'SENT'")
	f.exec("DELETE FROM bide.delay_task")
	f.putMany(1_000, 200*time.Second)
	mark := f.now().Add(-time.Second)

	claim := f.explain("plan_by_index", "claim", windowArgs()...)
	unbounded := f.explain("plan_by_index", "claim", []int{1}, []int64{-1e12}, []int64{200_250_000}, []int{256})
	t.Logf("claim by windows: %d buffers, from the beginning: %d", claim.Hit+claim.Read, unbounded.Hit+unbounded.Read)
	require.Greater(t, unbounded.Hit+unbounded.Read, 20*(claim.Hit+claim.Read), "the dead entries are there")

	sweep := f.explain("plan_by_index", "lock_due", []string{closeOrder}, mark, mark, time.Second, 200)
	full := f.explain("plan_by_index", "lock_due", []string{closeOrder}, time.Unix(0, 0), time.Unix(0, 0), time.Second, 200)
	t.Logf("sweep from its marks: %d buffers, in full: %d", sweep.Hit+sweep.Read, full.Hit+full.Read)
	require.Greater(t, full.Hit+full.Read, 20*(sweep.Hit+sweep.Read))
}
