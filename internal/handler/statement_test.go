package handler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/pgtest"
)

const (
	done        = "done"
	paid        = "skipped: not returned by the statement"
	noRow       = "skipped: no such row"
	held        = "locked: row held by another transaction"
	saysSkip    = "skipped: statement says skip"
	saysRetry   = "retry: statement says retry"
	countClosed = "SELECT count(*) FROM shop.orders WHERE status = 'CLOSED'"
)

func TestStatementAnswersForEachTask(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	h := prepare(t, shop, closeOrder)
	require.Equal(t, 200, h.Batch())
	exec(t, shop, "UPDATE shop.orders SET status = 'PAID' WHERE id = 2")

	require.Equal(t, []string{done, paid, noRow, done}, handle(t, shop, h, tasks("1", "2", "1000", "3")...))
	require.Equal(t, "1,3", value(t, shop, "SELECT string_agg(id::text, ',' ORDER BY id) FROM shop.orders WHERE status = 'CLOSED'"))

	require.Equal(t, []string{paid}, handle(t, shop, h, tasks("1")...), "a task fires once")
	require.Equal(t, []string{noRow}, handle(t, shop, h, tasks("-5")...), "the statement does not run for nothing")
	require.Empty(t, handle(t, shop, h))
}

func TestKeysOfManyTypes(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	exec(t, shop, `
		CREATE TYPE shop.colour AS ENUM ('red', 'deep blue');
		CREATE DOMAIN shop.positive AS bigint CHECK (VALUE > 0);
		CREATE DOMAIN shop.more AS shop.positive;
		CREATE DOMAIN shop."Code" AS varchar(8);
		CREATE COLLATION shop.nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`)
	tests := []struct {
		typ string
		// ids as tasks name them; each has a row.
		ids []string
	}{
		{"bigint", []string{"0", "00", "-7", " 8 ", "9223372036854775807"}},
		{"integer", []string{"1", "+2", "-2147483648"}},
		{"smallint", []string{"1", "2"}},
		{"oid", []string{"4000000000"}},
		{"numeric(12,2)", []string{"1.5", "1.50", "2", "-0.01"}},
		{"double precision", []string{"1e3", "-0", "NaN", "0.1"}},
		{"text", []string{"a", "A", "", " ", "NULL", "null", `{"a"}`, `\`, `'`, "$1", "ü", "00", "0"}},
		{"varchar", []string{"a,b", "x"}},
		{"char(6)", []string{"abc", "abc  ", "123456"}},
		{`"char"`, []string{"x", `"`}},
		{"name", []string{"pg_class"}},
		{"text COLLATE shop.nocase", []string{"Straße"}},
		{"uuid", []string{"6b0f9a52-0f0f-4a5e-9d39-0f7f6f1d7c11", "{6B0F9A52-0F0F-4A5E-9D39-0F7F6F1D7C11}", "6b0f9a520f0f4a5e9d390f7f6f1d7c12"}},
		{"date", []string{"2026-01-02", "Jan 3, 2026"}},
		{"timestamptz", []string{"2026-01-02 03:04:05.678901+00", "2026-01-02T04:04:05.678901+01"}},
		{"interval", []string{"1 day", "24:00:00"}},
		{"inet", []string{"10.0.0.1", "10.0.0.1/32"}},
		{"bytea", []string{`\x00ff`, `\\000`}},
		{"shop.colour", []string{"red", "deep blue"}},
		{"shop.positive", []string{"1", "01"}},
		{"shop.more", []string{"5"}},
		{`shop."Code"`, []string{"x y", "z"}},
	}
	for i, tt := range tests {
		t.Run(tt.typ, func(t *testing.T) {
			t.Parallel()
			table := fmt.Sprintf("shop.keys_%d", i)
			exec(t, shop, fmt.Sprintf(`CREATE TABLE %s (k %s PRIMARY KEY, hits int NOT NULL DEFAULT 0)`, table, tt.typ))
			for _, id := range tt.ids {
				_, err := shop.Exec(t.Context(), "INSERT INTO "+table+" (k) VALUES ($1) ON CONFLICT DO NOTHING", pgx.QueryExecModeExec, id)
				require.NoError(t, err)
			}
			for form, sql := range map[string]string{
				"update": "UPDATE " + table + " SET hits = hits + 1 WHERE k = ANY ($1) RETURNING k",
				"select": "SELECT k FROM unnest($1) AS u (k)",
				"join":   "UPDATE " + table + " AS t SET hits = hits + 1 FROM unnest($1) AS u (k) WHERE t.k = u.k RETURNING t.k, 'done'",
			} {
				h := prepare(t, shop, fmt.Sprintf("lock: %s(k)\nsql: %s", table, quoteYAML(sql)))
				for _, said := range handle(t, shop, h, tasks(tt.ids...)...) {
					require.Equal(t, done, said, form)
				}
			}
			require.Equal(t, "2", value(t, shop, "SELECT max(hits) FROM "+table), "one row, one effect a statement")
			require.Equal(t, "2", value(t, shop, "SELECT min(hits) FROM "+table))
		})
	}
}

func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func TestTwoSpellingsOfOneID(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	t.Run("with lock, in one batch", func(t *testing.T) {
		h := prepare(t, shop, closeOrder)
		require.Equal(t, []string{done, done, noRow}, handle(t, shop, h, tasks("00", "0", "000100")...))
		require.Equal(t, "1", value(t, shop, countClosed))
	})
	t.Run("with lock, each answered by its own row", func(t *testing.T) {
		h := prepare(t, shop, "lock: shop.orders(id)\nsql: SELECT id FROM unnest($1) AS u (id)")
		require.Equal(t, []string{done, done}, handle(t, shop, h, tasks("01", "1")...))
	})
	t.Run("without lock", func(t *testing.T) {
		h := prepare(t, shop, "sql: UPDATE shop.orders SET status = 'CLOSED' WHERE id = ANY ($1::bigint[]) AND status = 'UNPAID' RETURNING id")
		require.Equal(t, 1, h.Batch())
		require.Equal(t, []string{done}, handle(t, shop, h, tasks("02")...))
		require.Equal(t, []string{paid}, handle(t, shop, h, tasks("2")...))
	})
	t.Run("without lock, text stays text", func(t *testing.T) {
		h := prepare(t, shop, "sql: SELECT ltrim(id, '0') FROM unnest($1) AS u (id)")
		require.ErrorContains(t, failure(t, shop, h, tasks("07")...), `id "7" returned, which is not among the ids in $1`)
	})
}

func TestPayloadsComeInTheOrderOfTheIDs(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	h := prepare(t, shop, `
lock: shop.orders(id)
sql: |
  UPDATE shop.orders AS o SET note = coalesce(t.payload ->> 'say', 'nothing')
  FROM unnest($1, $2) AS t (id, payload) WHERE o.id = t.id
  RETURNING o.id`)
	exec(t, shop, "DELETE FROM shop.orders WHERE id = 4")
	blocker := begin(t, shop, "SELECT FROM shop.orders WHERE id = 6 FOR UPDATE")
	require.Equal(t, []string{done, noRow, done, held, done, done}, handle(t, shop, h,
		payload("5", `{"say": "five"}`), payload("4", `{"say": "four"}`), payload("3", ""), payload("6", `{"say": "six"}`),
		payload("2", `{"say": "\"{,}\\ü NULL"}`), payload("1", `null`)))
	require.NoError(t, blocker.Rollback(t.Context()))
	require.Equal(t, `nothing|"{,}\ü NULL|nothing|five`,
		value(t, shop, "SELECT string_agg(note, '|' ORDER BY id) FROM shop.orders"))
}

func TestAnyTextIsAnID(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	h := prepare(t, shop, `
sql: |
  SELECT id, CASE WHEN $2[1] #>> '{}' = id THEN 'done' ELSE 'retry' END FROM unnest($1) AS u (id)`)
	awkward := rapid.StringOf(rapid.SampledFrom([]rune("{}\",'\\ \t\n\v\u00a0nulNULaü$1;-/*☃")))
	rapid.Check(t, func(rt *rapid.T) {
		id := awkward.Draw(rt, "id")
		text, err := json.Marshal(id)
		require.NoError(rt, err)
		results, err := try(t.Context(), shop, h, []bide.Task{payload(id, string(text))})
		require.NoError(rt, err)
		require.Equal(rt, []handler.Result{{Verdict: handler.Done}}, results)
	})
}

// begin starts a transaction that holds what sql takes.
func begin(t *testing.T, shop *pgxpool.Pool, sql string) pgx.Tx {
	t.Helper()
	tx, err := shop.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	exec(t, tx, sql)
	return tx
}

func TestHeldRowsAreLockedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	h := prepare(t, shop, closeOrder)
	payment := begin(t, shop, "UPDATE shop.orders SET status = 'PAID' WHERE id IN (1, 3)")

	require.Equal(t, []string{done, held, done, held, held}, handle(t, shop, h, tasks("0", "1", "2", "3", "03")...))
	require.Equal(t, []string{held}, handle(t, shop, h, tasks("1")...))
	require.NoError(t, payment.Commit(t.Context()))
	require.Equal(t, []string{paid, paid}, handle(t, shop, h, tasks("1", "3")...))
	require.Equal(t, "2", value(t, shop, countClosed))
}

func TestRowsThatMerelyReferToTheOrderDoNotHoldIt(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	h := prepare(t, shop, closeOrder)
	begin(t, shop, "INSERT INTO shop.payments VALUES (1)")
	require.Equal(t, []string{done}, handle(t, shop, h, tasks("1")...))
}

func TestARowThatIsBeingDeletedIsNotGoneYet(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	h := prepare(t, shop, closeOrder)
	deleting := begin(t, shop, "DELETE FROM shop.orders WHERE id = 1")
	require.Equal(t, []string{held}, handle(t, shop, h, tasks("1")...))
	require.NoError(t, deleting.Commit(t.Context()))
	require.Equal(t, []string{noRow}, handle(t, shop, h, tasks("1")...))
}

func TestAKeyOfSeveralRowsIsLockedWhole(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	exec(t, shop, `
		CREATE TABLE shop.lines (order_id numeric, line int, closed bool DEFAULT false);
		INSERT INTO shop.lines VALUES (1, 1), (1.0, 2), (2, 1)`)
	h := prepare(t, shop, `
lock: shop.lines(order_id)
sql: |
  WITH closed AS (UPDATE shop.lines SET closed = true WHERE order_id = ANY ($1) RETURNING order_id)
  SELECT DISTINCT order_id FROM closed`)
	holder := begin(t, shop, "UPDATE shop.lines SET line = 3 WHERE line = 2")
	require.Equal(t, []string{held, done}, handle(t, shop, h, tasks("1", "2")...))
	require.NoError(t, holder.Commit(t.Context()))
	require.Equal(t, []string{done}, handle(t, shop, h, tasks("1.00")...))
	require.Equal(t, "3", value(t, shop, "SELECT count(*) FROM shop.lines WHERE closed"))
}

// TestAPaymentIsNeverOverlooked plays the three moments at which a payment can
// meet the close. The recheck reads another table too: a statement that waits
// for a lock sees such tables as they were before it waited.
func TestAPaymentIsNeverOverlooked(t *testing.T) {
	t.Parallel()
	const pay = `
		SELECT FROM shop.orders WHERE id = 1 FOR UPDATE;
		INSERT INTO shop.payments VALUES (1)`
	for name, sql := range map[string]string{
		"status in a CTE":    "WITH due AS (SELECT id FROM shop.orders WHERE id = ANY ($1) AND status = 'UNPAID') UPDATE shop.orders SET status = 'CLOSED' WHERE id IN (SELECT id FROM due) RETURNING id",
		"payments elsewhere": "UPDATE shop.orders SET status = 'CLOSED' WHERE id = ANY ($1) AND NOT EXISTS (SELECT FROM shop.payments WHERE order_id = orders.id) RETURNING id",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := newShop(t)
			h := prepare(t, shop, "lock: shop.orders(id)\nsql: "+quoteYAML(sql))

			payment := begin(t, shop, pay+"; UPDATE shop.orders SET status = 'PAID' WHERE id = 1")
			worker := begin(t, shop, "SELECT FROM shop.orders")
			results, err := h.Handle(t.Context(), worker.Conn(), tasks("1", "2"))
			require.NoError(t, err)
			require.Equal(t, []handler.Verdict{handler.Locked, handler.Done}, verdicts(results), "payment in flight")

			require.NoError(t, payment.Commit(t.Context()))
			results, err = h.Handle(t.Context(), worker.Conn(), tasks("1"))
			require.NoError(t, err)
			require.Equal(t, []handler.Verdict{handler.Skipped}, verdicts(results), "payment committed since the transaction began")

			results, err = h.Handle(t.Context(), worker.Conn(), tasks("3"))
			require.NoError(t, err)
			require.Equal(t, []handler.Verdict{handler.Done}, verdicts(results))
			_, err = shop.Exec(t.Context(), "SET lock_timeout = '50ms'; UPDATE shop.orders SET status = 'PAID' WHERE id = 3")
			require.ErrorContains(t, err, "lock timeout", "a payment that comes after the close waits for it")
			require.NoError(t, worker.Commit(t.Context()))
		})
	}
}

func verdicts(results []handler.Result) []handler.Verdict {
	v := make([]handler.Verdict, len(results))
	for i, r := range results {
		v[i] = r.Verdict
	}
	return v
}

func TestASecondColumnGivesTheVerdict(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	exec(t, shop, "CREATE TYPE shop.verdict AS ENUM ('done', 'skip', 'retry')")
	for _, typ := range []string{"text", "varchar", "char(9)", "name"} {
		h := prepare(t, shop, fmt.Sprintf(`
lock: shop.orders(id)
sql: |
  SELECT id, (CASE id WHEN 1 THEN 'done' WHEN 2 THEN 'skip' ELSE 'retry' END)::%s
  FROM unnest($1) AS u (id) WHERE id <> 4`, typ))
		require.Equal(t, []string{done, saysSkip, saysRetry, paid}, handle(t, shop, h, tasks("1", "2", "3", "4")...))
	}
}

func TestAStatementThatActsOnOtherRowsFailsItsBatch(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	tests := []struct {
		name string
		sql  string
		want string
	}{
		{"foreign id", "SELECT id FROM unnest($1) AS u (id) UNION SELECT 7", `id "7" returned, which is not among the ids in $1`},
		{"far too many", "SELECT g FROM generate_series(1, 100000::bigint) AS g WHERE $1 IS NOT NULL", "returned, which is not among the ids in $1"},
		{"repeated id", "SELECT id FROM unnest($1) AS u (id), generate_series(1, 2)", `id "1" returned 2 times, asked for 1`},
		{"two verdicts", "SELECT id, CASE n WHEN 2 THEN 'done' ELSE 'skip' END FROM unnest($1) WITH ORDINALITY AS u (id, n)", `id "2" returned as done and as skipped`},
		{"null id", "SELECT nullif(id, 2) FROM unnest($1) AS u (id)", "null id returned"},
		{"null verdict", "SELECT id, NULL FROM unnest($1) AS u (id)", `null verdict for id "1", want done, skip or retry`},
		{"unknown verdict", "SELECT id, 'DONE' FROM unnest($1) AS u (id)", `verdict "DONE" for id "1", want done, skip or retry`},
		{"locked is not the statement's to say", "SELECT id, 'locked' FROM unnest($1) AS u (id)", `verdict "locked" for id "1", want done, skip or retry`},
		{"error", "SELECT id / 0 FROM unnest($1) AS u (id)", "division by zero (SQLSTATE 22012)"},
	}
	for _, tt := range tests {
		// One after the other: they lock the same rows.
		t.Run(tt.name, func(t *testing.T) {
			h := prepare(t, shop, "lock: shop.orders(id)\nsql: "+quoteYAML(tt.sql))
			err := failure(t, shop, h, tasks("1", "2", "02")...)
			require.ErrorContains(t, err, `handler "h" (h.yaml:2): statement: `)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAStatementThatChangedSinceItWasPreparedFailsItsBatch(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	exec(t, shop, "CREATE FUNCTION shop.act(ids bigint[], OUT id bigint, OUT verdict text) RETURNS SETOF record LANGUAGE sql AS $$ SELECT id, 'done' FROM unnest(ids) AS u (id) $$")
	h := prepare(t, shop, "lock: shop.orders(id)\nsql: SELECT * FROM shop.act($1)")
	require.Equal(t, []string{done}, handle(t, shop, h, tasks("1")...))
	exec(t, shop, "DROP FUNCTION shop.act; CREATE FUNCTION shop.act(ids bigint[]) RETURNS SETOF bigint LANGUAGE sql AS $$ SELECT unnest(ids) $$")
	require.ErrorContains(t, failure(t, shop, h, tasks("1")...), "1 columns returned, 2 when the handler was checked: restart to check it again")
}

func TestAPoisonIDFailsItsBatch(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	h := prepare(t, shop, closeOrder)
	err := failure(t, shop, h, tasks("1", "abc")...)
	require.ErrorContains(t, err, `lock shop.orders(id): ERROR: invalid input syntax for type bigint: "abc" (SQLSTATE 22P02)`)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "0", value(t, shop, countClosed))
}

func TestHandleRefusesWhatWouldLoseTasks(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	unprepared := parse(t, closeOrder).Handlers()["h"]
	require.EqualError(t, failure(t, shop, unprepared, tasks("1")...), `handler "h" (h.yaml:2): not prepared`)

	alone := prepare(t, shop, "sql: SELECT unnest($1)")
	require.EqualError(t, failure(t, shop, alone, tasks("1", "2")...), `handler "h" (h.yaml:2): 2 tasks at once, without lock each runs alone`)
}

func TestACancelledContextEndsTheWait(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	h := prepare(t, shop, "sql: SELECT unnest($1) FROM pg_sleep(60)")
	ctx, cancel := context.WithTimeout(t.Context(), 50e6)
	defer cancel()
	began := time.Now()
	_, err := try(ctx, shop, h, tasks("1"))
	require.Error(t, err)
	require.Error(t, ctx.Err())
	require.Less(t, time.Since(began), 30*time.Second, "the statement itself takes a minute")
}

// TestThroughPgBouncer takes the whole way in transaction mode, where each
// transaction may meet another server.
func TestThroughPgBouncer(t *testing.T) {
	t.Parallel()
	direct := pgtest.Pool(t, pgtest.PgBouncerURL(t), 4)
	schema := "shop_" + rapid.StringMatching("[a-z]{12}").Example()
	exec(t, direct, "CREATE SCHEMA "+schema)
	t.Cleanup(func() {
		_, err := direct.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		require.NoError(t, err)
	})
	exec(t, direct, fmt.Sprintf(`
		CREATE DOMAIN %[1]s.id AS uuid;
		CREATE TABLE %[1]s.orders (id %[1]s.id PRIMARY KEY, n int, status text DEFAULT 'UNPAID');
		INSERT INTO %[1]s.orders SELECT gen_random_uuid(), n FROM generate_series(1, 40) AS n`, schema))
	fields := strings.ReplaceAll(closeOrder, "shop.", schema+".")
	set := parse(t, fields)
	require.NoError(t, set.Prepare(t.Context(), direct))
	advice, err := set.Advise(t.Context(), direct)
	require.NoError(t, err)
	require.Empty(t, advice)

	for n := 1; n <= 40; n++ {
		id := value(t, direct, fmt.Sprintf("SELECT id FROM %s.orders WHERE n = %d", schema, n))
		require.Equal(t, []string{done, noRow}, handle(t, direct, set.Handlers()["h"],
			tasks(id, "00000000-0000-0000-0000-000000000000")...))
	}
}
