package outbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// Whoever meets the ledger in a database tool can read what it is.
func TestEverythingInTheSchemaHasAComment(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	require.Empty(t, values[string](f, `SELECT relname FROM pg_class
		WHERE relnamespace = 'bide'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition
		  AND obj_description(oid, 'pg_class') IS NULL`), "tables and views")
	require.Empty(t, values[string](f, `SELECT relname || '.' || attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
		WHERE relnamespace = 'bide'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition AND attnum > 0
		  AND col_description(attrelid, attnum) IS NULL`), "columns")
	require.Empty(t, values[string](f, `SELECT proname FROM pg_proc
		WHERE pronamespace = 'bide'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL`), "functions")
	require.Empty(t, values[string](f, `SELECT typname FROM pg_type
		WHERE typnamespace = 'bide'::regnamespace AND typtype = 'e' AND obj_description(oid, 'pg_type') IS NULL`), "types")
}

// What became of order 1?
func TestTheViewTellsWhatBecameOfAnOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.exec(`INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
		SELECT t, '1', now() + i FROM (VALUES ('close', interval '-1 minute'), ('remind', '-1 minute'), ('survey', '1 day'), ('thank', '2 days')) AS v (t, i)`)
	e := f.lock(values[int64](f, "SELECT id FROM bide.delay_task WHERE biz_type IN ('close', 'remind') ORDER BY biz_type")...)
	list := verdicts(e, bide.Done)
	for i, task := range e.Tasks {
		if task.BizType == "remind" {
			list[i].Result, list[i].Note = bide.Skipped, "paid"
		}
	}
	require.NoError(t, e.Finish(f.ctx, bide.ViaBroker, list))
	_, err := f.ledger.Cancel(f.ctx, "survey", "1")
	require.NoError(t, err)
	f.put("another", time.Hour, bide.Waiting)
	require.Equal(t, []string{
		"close DONE broker", "remind SKIPPED broker paid", "survey CANCELLED operator", "thank WAITING",
	}, values[string](f, "SELECT concat_ws(' ', biz_type, state, via, last_error) FROM bide.task WHERE biz_id = '1' ORDER BY biz_type"))
	require.Equal(t, []bool{true, true, true, false}, values[bool](f, "SELECT finished_at IS NOT NULL FROM bide.task WHERE biz_id = '1' ORDER BY biz_type"))
}
