package outbox_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

// role makes a login role without rights and connects as it.
func (f *fixture) role(suffix string) (name string, conn *pgx.Conn) {
	f.Helper()
	name = pgtest.Database(f, f.url) + suffix
	quoted := pgx.Identifier{name}.Sanitize()
	f.exec("CREATE ROLE " + quoted + " LOGIN PASSWORD 'app'")
	address, err := url.Parse(f.url)
	require.NoError(f, err)
	address.User = url.UserPassword(name, "app")
	conn, err = pgx.Connect(f.ctx, address.String())
	require.NoError(f, err)
	f.Cleanup(func() {
		ctx := context.WithoutCancel(f.ctx)
		require.NoError(f, conn.Close(ctx))
		_, err := f.pool.Exec(ctx, "DROP OWNED BY "+quoted+" CASCADE; DROP ROLE "+quoted)
		require.NoError(f, err)
	})
	return name, conn
}

func (f *fixture) grant(role string) {
	f.Helper()
	conn, err := f.pool.Acquire(f.ctx)
	require.NoError(f, err)
	defer conn.Release()
	require.NoError(f, outbox.Grant(f.ctx, conn.Conn(), outbox.DefaultSchema, role))
}

// What an application may do, and what it may not.
func TestAGrantedRoleUsesTheLedgerAndNothingMore(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	name, app := f.role("_App role") // needs quoting
	f.grant(name)
	f.grant(name) // again does no harm
	for _, sql := range []string{
		"SELECT bide.schedule('a', '1', now() + interval '1 hour', '{}')",
		"SELECT bide.schedule('a', '1', now() + interval '2 hours')",
		"SELECT bide.schedule('a', '1', now() - interval '1 hour')",
		"SELECT bide.schedule_in('b', '1', '30 minutes')",
		"INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) VALUES ('c', '1', now())",
		"INSERT INTO bide.delay_task (biz_type, biz_id, fire_at, payload) VALUES ('d', '1', now(), '1')",
		"SELECT bide.reschedule('a', '1', now() + interval '3 hours')",
		"SELECT bide.cancel('a', '1')",
		"SELECT * FROM bide.cancel_all('1')",
		"SELECT * FROM bide.task WHERE biz_id = '1'",
	} {
		_, err := app.Exec(f.ctx, sql)
		require.NoError(t, err, sql)
	}
	f.put("held", -time.Minute, "RUNNING")
	_, err := app.Exec(f.ctx, "SELECT bide.cancel($1, 'held'), bide.reschedule($1, 'held', now())", closeOrder)
	require.NoError(t, err, "requests are left on its behalf")

	for _, sql := range []string{
		"SELECT FROM bide.delay_task",
		"SELECT FROM bide.delay_task_history",
		"SELECT FROM bide.ledger",
		"SELECT FROM bide.relay_batch",
		"INSERT INTO bide.delay_task (biz_type, biz_id, fire_at, status) VALUES ('e', '1', now(), 'FAILED')",
		"INSERT INTO bide.delay_task (biz_type, biz_id, fire_at, sends) VALUES ('e', '1', now(), 5)",
		"INSERT INTO bide.delay_task_history SELECT",
		"INSERT INTO bide.delay_task_request (task_id) VALUES (1)",
		"UPDATE bide.delay_task SET fire_at = now()",
		"UPDATE bide.task SET fire_at = now()",
		"DELETE FROM bide.delay_task",
		"DELETE FROM bide.delay_task_history",
		"TRUNCATE bide.delay_task",
		"DROP TABLE bide.delay_task",
		"SELECT bide.history_add_day('2040-01-01')",
		"SELECT bide.has_fired('a', '1', now())",
		"SELECT bide.cancel_as('a', '1', 'operator')",
		"CREATE TABLE bide.mine ()",
		"CREATE FUNCTION bide.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"UPDATE bide.schema_version SET version = 0",
	} {
		_, err := app.Exec(f.ctx, sql)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, sql)
		require.Contains(t, []string{"42501", "55000"}, refused.Code, "%s: %s", sql, err) // no privilege, not updatable
	}
}

func TestAnUngrantedRoleCanDoNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	name, app := f.role("_other")
	f.put("1", time.Hour, "WAITING")
	calls := []string{
		"SELECT bide.schedule('a', '1', now())",
		"SELECT bide.schedule_in('a', '1', '1 s')",
		"SELECT bide.cancel('close_order', '1')",
		"SELECT bide.cancel_as('close_order', '1', 'operator')",
		"SELECT bide.cancel_all('1')",
		"SELECT bide.reschedule('close_order', '1', now())",
		"SELECT bide.has_fired('a', '1', now())",
		"SELECT bide.history_add_day('2040-01-01')",
		"SELECT FROM bide.task",
		"INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) VALUES ('c', '1', now())",
	}
	refuse := func(why string) {
		for _, sql := range calls {
			_, err := app.Exec(f.ctx, sql)
			require.ErrorContains(t, err, "permission denied", "%s: %s", why, sql)
		}
	}
	refuse("no right on the schema")
	f.exec(fmt.Sprintf("GRANT USAGE ON SCHEMA bide TO %s", pgx.Identifier{name}.Sanitize()))
	refuse("PUBLIC has no rights either")
	require.Equal(t, "WAITING", f.state("1"))
}

func TestGrantNamesTheRoleItCannotServe(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	conn, err := f.pool.Acquire(f.ctx)
	require.NoError(t, err)
	defer conn.Release()
	require.ErrorContains(t, outbox.Grant(f.ctx, conn.Conn(), outbox.DefaultSchema, `nobody"; DROP SCHEMA bide`), `role nobody"; DROP SCHEMA bide`)
	require.ErrorContains(t, outbox.Grant(f.ctx, conn.Conn(), "No", "x"), `schema "No"`)
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.task"))
}

// The functions run as their owner. A caller that puts its own objects first,
// in a schema of its own or in the temporary one, does not get them run.
func TestAnAttackersSearchPathIsIgnored(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	name, app := f.role("_attacker")
	f.grant(name)
	f.exec("CREATE TABLE public.hits (who text); GRANT INSERT ON public.hits TO PUBLIC")
	f.exec("CREATE SCHEMA evil AUTHORIZATION " + pgx.Identifier{name}.Sanitize())
	_, err := app.Exec(f.ctx, `
		CREATE FUNCTION evil.hit() RETURNS void LANGUAGE sql AS 'INSERT INTO public.hits VALUES (current_user)';
		CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT evil.hit(); SELECT pg_catalog.now()';
		CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT evil.hit(); SELECT pg_catalog.now()';
		CREATE FUNCTION evil.format(text, text) RETURNS text LANGUAGE sql AS 'SELECT evil.hit(); SELECT $1';
		CREATE FUNCTION evil.has_fired(text, text, timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT evil.hit(); SELECT true';
		CREATE FUNCTION evil.refuse_null(text, text, text) RETURNS void LANGUAGE sql AS 'SELECT evil.hit()';
		CREATE FUNCTION evil.schedule(text, text, timestamptz, jsonb) RETURNS text LANGUAGE sql AS 'SELECT evil.hit(); SELECT ''created''';
		CREATE FUNCTION evil.cancel(text, text) RETURNS text LANGUAGE sql AS 'SELECT evil.hit(); SELECT ''cancelled''';
		CREATE FUNCTION evil.cancel_as(text, text, text) RETURNS text LANGUAGE sql AS 'SELECT evil.hit(); SELECT ''cancelled''';
		CREATE FUNCTION evil.equal(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT evil.hit(); SELECT true';
		CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.equal);
		CREATE FUNCTION evil.later(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT evil.hit(); SELECT true';
		CREATE OPERATOR evil.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = evil.later);
		CREATE OPERATOR evil.<> (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = evil.later);
		CREATE DOMAIN evil.task_result AS text;
		CREATE TABLE evil.delay_task (LIKE bide.task);
		CREATE TEMPORARY TABLE delay_task (id bigint, biz_type text, biz_id text, fire_at timestamptz, status text, payload jsonb, updated_at timestamptz);
		CREATE TEMPORARY TABLE delay_task_history (result text, biz_id text, biz_type text, fire_at timestamptz, finished_at timestamptz);
		CREATE TEMPORARY TABLE delay_task_request (task_id bigint, fire_at timestamptz);
		SET search_path = evil, pg_temp, bide, pg_catalog`)
	require.NoError(t, err)
	for _, call := range []struct{ sql, want string }{
		{"bide.schedule('a', '1', pg_catalog.now() + '1 hour')", "created"},
		{"bide.schedule('a', '1', pg_catalog.now() - interval '1 hour')", "moved"},
		{"bide.schedule_in('a', '1', '2 hours')", "moved"},
		{"bide.reschedule('a', '1', pg_catalog.now() + '3 hours')", "moved"},
		{"bide.cancel('a', '1')", "cancelled"},
		{"bide.schedule_in('b', '1', '2 hours')", "created"},
		{"(SELECT outcome FROM bide.cancel_all('1'))", "cancelled"},
		{"bide.cancel('a', 'unknown')", "not_found"},
	} {
		var answer string
		require.NoError(t, app.QueryRow(f.ctx, "SELECT "+call.sql).Scan(&answer), call.sql)
		require.Equal(t, call.want, answer, call.sql)
	}
	_, err = app.Exec(f.ctx, "SELECT bide.cancel(NULL, '1')")
	require.ErrorContains(t, err, "cancel: biz_type is null")
	require.Empty(t, values[string](f, "SELECT who FROM public.hits"), "nothing of the caller's ran")
	var planted int
	require.NoError(t, app.QueryRow(f.ctx, `SELECT (SELECT pg_catalog.count(*) FROM evil.delay_task) + (SELECT pg_catalog.count(*) FROM pg_temp.delay_task)
		+ (SELECT pg_catalog.count(*) FROM pg_temp.delay_task_request)`).Scan(&planted))
	require.Zero(t, planted, "nothing went into the caller's tables")
	require.Equal(t, []string{"CANCELLED", "CANCELLED"}, values[string](f, "SELECT state FROM bide.task"))
}

// Every function that lends its owner's rights pins its search_path, and
// nothing is open to everybody.
func TestEveryFunctionPinsItsSearchPath(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	require.Empty(t, values[string](f, `SELECT proname FROM pg_proc WHERE pronamespace = 'bide'::regnamespace
		AND NOT coalesce(proconfig, '{}') @> ARRAY['search_path=pg_catalog, bide, pg_temp']
		AND NOT coalesce(proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']`))
	require.Empty(t, values[string](f, `SELECT proname FROM pg_proc WHERE pronamespace = 'bide'::regnamespace
		AND has_function_privilege('public', oid, 'EXECUTE')`))
	require.Empty(t, values[string](f, `SELECT relname FROM pg_class WHERE relnamespace = 'bide'::regnamespace
		AND relkind IN ('r', 'p', 'v') AND has_table_privilege('public', oid, 'SELECT, INSERT, UPDATE, DELETE')`))
}
