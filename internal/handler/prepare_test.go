package handler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/pgtest"
)

func TestPrepareNamesEveryFault(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	exec(t, shop, `
		CREATE VIEW shop.open AS SELECT * FROM shop.orders;
		CREATE TABLE shop.odd (ids bigint[], j json, v varchar PRIMARY KEY)`)
	database := value(t, shop, "SELECT current_database()")
	const tryIt = "; try it in psql: PREPARE t (bigint[], jsonb[]) AS …"
	tests := []struct {
		name   string
		fields string
		want   string
	}{
		{"no schema", "lock: sop.orders(id)\nsql: SELECT $1", "3:11: no table sop.orders in database " + database + "; correct the name, or create the table first"},
		{"no table", `lock: shop."Orders"(id)` + "\nsql: SELECT $1", "3:11: no table shop.Orders in database " + database + "; correct the name, or create the table first"},
		{"a view", "lock: shop.open(id)\nsql: SELECT $1", "3:11: shop.open is not a table; name the table whose rows the payment locks or updates"},
		{"no column", "lock: shop.orders(order_id)\nsql: SELECT $1", `3:11: no column "order_id" in table shop.orders; name its key column`},
		{"an array key", "lock: shop.odd(ids)\nsql: SELECT $1", "3:11: shop.odd(ids) is of type bigint[], which has no arrays; name a key of a simpler type"},
		{
			"a key without equality", "lock: shop.odd(j)\nsql: SELECT $1",
			"3:11: cannot lock rows of shop.odd(j): operator does not exist: json = json (SQLSTATE 42883); use a key whose type can be compared",
		},
		{"syntax", "lock: shop.orders(id)\nsql: |\n\n  SELECT id\n  FORM unnest($1) AS u (id)", `7:12: PostgreSQL refuses the statement: syntax error at or near "unnest" (SQLSTATE 42601)` + tryIt},
		{"at the end", "lock: shop.orders(id)\nsql: |\n  SELECT id FROM unnest($1", "5:31: PostgreSQL refuses the statement: syntax error at end of input (SQLSTATE 42601)" + tryIt},
		{
			"no such column, behind letters of several bytes", "lock: shop.orders(id)\nsql: |\n  SELECT id\n  FROM shop.orders -- ü\n  WHERE 'ü☃' <> statuss AND id = ANY ($1)",
			`7:21: PostgreSQL refuses the statement: column "statuss" does not exist (SQLSTATE 42703); Perhaps you meant to reference the column "orders.status".`,
		},
		{"on one line", "lock: shop.orders(id)\nsql: 'SELECT nope($1)'", "4:18: PostgreSQL refuses the statement: function nope(bigint[]) does not exist (SQLSTATE 42883); No function matches the given name and argument types. You might need to add explicit type casts."},
		{"folded", "lock: shop.orders(id)\nsql: >\n  SELECT\n  nope($1)", "4:10: PostgreSQL refuses the statement: function nope(bigint[]) does not exist (SQLSTATE 42883); No function matches the given name and argument types. You might need to add explicit type casts."},
		{"a statement within", "lock: shop.orders(id)\nsql: |\n  WITH x AS (COMMIT) SELECT $1", `5:18: PostgreSQL refuses the statement: syntax error at or near "COMMIT" (SQLSTATE 42601)` + tryIt},
		{"returns nothing", "lock: shop.orders(id)\nsql: DELETE FROM shop.orders WHERE id = ANY ($1)", "4:10: statement returns nothing; end it with RETURNING and the id, or SELECT the ids that it acted on"},
		{"returns too much", "lock: shop.orders(id)\nsql: DELETE FROM shop.orders WHERE id = ANY ($1) RETURNING *", "4:10: statement returns 3 columns; return the id, and a verdict (done, skip or retry) if need be"},
		{
			"returns the wrong types", "lock: shop.orders(id)\nsql: DELETE FROM shop.orders WHERE id = ANY ($1) RETURNING id::int, true AS ok",
			`4:10: first column "id" is integer, and shop.orders(id) is bigint; return the ids as they are in $1` + "\n" +
				`4:10: second column "ok" is boolean; make it text: done, skip or retry`,
		},
		{"returns a verdict first", "lock: shop.odd(v)\nsql: SELECT 'done', v FROM unnest($1) AS u (v)", `4:10: first column "?column?" is text, and shop.odd(v) is character varying; return the ids as they are in $1`},
		{"returns a type without equality", "sql: SELECT j FROM shop.odd WHERE v = ANY ($1)", "3:10: first column is json, which cannot be compared; return the id"},
		{"returns a type without arrays", "sql: SELECT pg_notify('x', $1[1])", "3:10: first column is void, which cannot be compared; return the id"},
		{"a type without lock is text", "sql: SELECT id FROM shop.orders WHERE id = ANY ($1)", "3:46: PostgreSQL refuses the statement: operator does not exist: bigint = text (SQLSTATE 42883); No operator matches the given name and argument types. You might need to add explicit type casts."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			set := parse(t, tt.fields)
			require.EqualError(t, set.Prepare(t.Context(), shop), "h.yaml:"+strings.ReplaceAll(tt.want, "\n", "\nh.yaml:"))
			require.ErrorContains(t, failure(t, shop, set.Handlers()["h"], tasks("1")...), "not prepared")
		})
	}
}

func TestPrepareReportsAllHandlers(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	set, err := handler.Parse("h.yaml", []byte(`handlers:
  a: {lock: shop.none(id), sql: SELECT $1}
  b: {lock: shop.orders(id), sql: "SELECT unnest($1)"}
  c: {sql: DELETE FROM shop.orders WHERE id::text = ANY ($1)}
`))
	require.NoError(t, err)
	err = set.Prepare(t.Context(), shop)
	require.ErrorContains(t, err, "h.yaml:2:13: no table shop.none")
	require.ErrorContains(t, err, "h.yaml:4:12: statement returns nothing")
	require.NotContains(t, err.Error(), "h.yaml:3")
	require.Equal(t, []string{done}, handle(t, shop, set.Handlers()["b"], tasks("1")...), "the sound one works")
}

func TestPrepareTakesPartitionedTablesAndFunctions(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	exec(t, shop, `
		CREATE TABLE shop.parcels (id int, day date, sent bool DEFAULT false, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
		CREATE TABLE shop.parcels_1 PARTITION OF shop.parcels FOR VALUES FROM ('2026-01-01') TO ('2026-01-02');
		CREATE TABLE shop.parcels_2 PARTITION OF shop.parcels DEFAULT;
		INSERT INTO shop.parcels VALUES (1, '2026-01-01'), (2, '2026-01-02');
		CREATE FUNCTION shop.send(ids int[], payloads jsonb[]) RETURNS TABLE (id int, verdict text) LANGUAGE sql AS $$
			UPDATE shop.parcels SET sent = true WHERE id = ANY (ids) RETURNING id, 'done'
		$$`)
	h := prepare(t, shop, "lock: shop.parcels(id)\nsql: SELECT * FROM shop.send($1, $2)")
	require.Equal(t, []string{done, done, noRow}, handle(t, shop, h, tasks("1", "2", "3")...))
	require.Equal(t, "2", value(t, shop, "SELECT count(*) FROM shop.parcels WHERE sent"))
}

func TestPrepareChecksPrivileges(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	role := "bide_test_" + strings.TrimPrefix(value(t, shop, "SELECT current_database()"), "bide_test_")
	exec(t, shop, fmt.Sprintf("CREATE ROLE %[1]s LOGIN PASSWORD 'canary'; GRANT USAGE ON SCHEMA shop TO %[1]s; GRANT SELECT ON shop.orders TO %[1]s", role))
	t.Cleanup(func() {
		_, err := shop.Exec(context.Background(), fmt.Sprintf("DROP OWNED BY %[1]s; DROP ROLE %[1]s", role))
		require.NoError(t, err)
	})
	cfg := shop.Config()
	cfg.ConnConfig.User, cfg.ConnConfig.Password = role, "canary"
	worker, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(worker.Close)

	set := parse(t, strings.Replace(closeOrder, "RETURNING", "AND NOT EXISTS (SELECT FROM shop.payments) RETURNING", 1))
	require.EqualError(t, set.Prepare(t.Context(), worker),
		"h.yaml:3:11: cannot lock rows of shop.orders(id): permission denied for table orders (SQLSTATE 42501); grant the consumer's role SELECT and UPDATE on the table, and USAGE on its schema")
	exec(t, shop, "GRANT UPDATE ON shop.orders TO "+role)
	require.EqualError(t, set.Prepare(t.Context(), worker),
		"h.yaml:4:10: PostgreSQL refuses the statement: permission denied for table payments (SQLSTATE 42501); grant the consumer's role what the statement needs")
	exec(t, shop, "GRANT SELECT ON shop.payments TO "+role)
	require.NoError(t, set.Prepare(t.Context(), worker))
}

func TestPrepareTellsAFaultFromAFailedCheck(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.NewDatabase(t), 1)
	pool.Close()
	err := parse(t, closeOrder).Prepare(t.Context(), pool)
	require.ErrorContains(t, err, `check handler "h": `)
	var fault *bide.Fault
	require.NotErrorAs(t, err, &fault)
}

func TestPrepareChangesNothing(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	exec(t, shop, "CREATE SEQUENCE shop.ticket")
	prepare(t, shop, "lock: shop.orders(id)\nsql: DELETE FROM shop.orders WHERE id = ANY ($1) AND nextval('shop.ticket') > 0 RETURNING id")
	require.Equal(t, "100", value(t, shop, "SELECT count(*) FROM shop.orders"))
	require.Equal(t, "f", value(t, shop, "SELECT is_called::text FROM shop.ticket")[:1])
}
