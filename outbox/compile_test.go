package outbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

// With sequential scans priced out, a statement that reads a table without a
// suitable index costs more than jit_optimize_above_cost, and the server would
// compile for a second what runs for a millisecond.
func TestStatementsOfTheLoopsAreNotCompiled(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	pgtest.Migrate(t, url, outbox.DefaultSchema)
	samples := map[string]string{
		"integer": "1", "bigint": "1", "integer[]": "'{1}'", "bigint[]": "'{1}'", "text": "'x'", "text[]": "'{x}'",
		"interval": "'1 s'", "timestamp with time zone": "now()", "timestamp with time zone[]": "ARRAY[now()]",
	}
	for _, name := range []string{
		"claim", "settle", "recover", "peek", "overdue", "lock_due", "give_back", "retry", "reclaim", "honour", "counts", "oldest_overdue",
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			conn, err := pgx.Connect(ctx, url)
			require.NoError(t, err)
			defer conn.Close(ctx)
			_, err = conn.Exec(ctx, "BEGIN")
			require.NoError(t, err)
			_, err = conn.Exec(ctx, statement(t, "plan_by_index"))
			require.NoError(t, err)
			prepared, err := conn.Prepare(ctx, "it", statement(t, name))
			require.NoError(t, err)
			var args []string
			require.NoError(t, conn.QueryRow(ctx, "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'it'").Scan(&args))
			for i, typ := range args {
				require.Contains(t, samples, typ)
				args[i] = samples[typ]
			}
			call := prepared.Name
			if len(args) > 0 {
				call = fmt.Sprintf("%s(%s)", call, strings.Join(args, ", "))
			}
			rows, err := conn.Query(ctx, "EXPLAIN (ANALYZE) EXECUTE "+call)
			require.NoError(t, err)
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			require.NotContains(t, strings.Join(plan, "\n"), "JIT:")
		})
	}
}

func statement(t *testing.T, name string) string {
	t.Helper()
	sql, err := outbox.DefaultSchema.Statement(name)
	require.NoError(t, err)
	require.NotEmpty(t, sql)
	return sql
}
