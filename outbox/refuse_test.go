package outbox_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/outbox"
)

const (
	keyBytes     = 512
	payloadBytes = 65536
)

func TestSQLRefusesWhatCannotBeATask(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	long := strings.Repeat("x", keyBytes+1)
	wide := strings.Repeat("ä", keyBytes/2+1)
	for _, tt := range []struct {
		name, sql string
		want      string
		args      []any
	}{
		{"no type", "SELECT bide.schedule(NULL, '1', now())", "biz_type is null", nil},
		{"no id", "SELECT bide.schedule('a', NULL, now())", "biz_id is null", nil},
		{"no time", "SELECT bide.schedule('a', '1', NULL)", "fire_at is null", nil},
		{"no delay", "SELECT bide.schedule_in('a', '1', NULL)", "delay is null", nil},
		{"no time in an insert", "INSERT INTO bide.delay_task (biz_type, biz_id) VALUES ('a', '1')", "fire_at", nil},
		{"never", "SELECT bide.schedule('a', '1', 'infinity')", "fire_at_is_between_the_years_1970_and_3000", nil},
		{"since ever", "SELECT bide.schedule('a', '1', '-infinity')", "fire_at_is_between_the_years_1970_and_3000", nil},
		{"never, in an insert", "INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) VALUES ('a', '1', 'infinity')", "fire_at_is_between_the_years_1970_and_3000", nil},
		{"before 1970", "SELECT bide.schedule('a', '1', '1969-12-31 23:59:59.999999Z')", "fire_at_is_between_the_years_1970_and_3000", nil},
		{"from 3000 on", "SELECT bide.schedule('a', '1', '3000-01-01Z')", "fire_at_is_between_the_years_1970_and_3000", nil},
		{"too long a delay", "SELECT bide.schedule_in('a', '1', '1000 years')", "fire_at_is_between_the_years_1970_and_3000", nil},
		{"empty type", "SELECT bide.schedule('', '1', now())", "biz_type_has_1_to_512_bytes", nil},
		{"empty id", "SELECT bide.schedule('a', '', now())", "biz_id_has_1_to_512_bytes", nil},
		{"long type", "SELECT bide.schedule($1, '1', now())", "biz_type_has_1_to_512_bytes", []any{long}},
		{"long id", "SELECT bide.schedule('a', $1, now())", "biz_id_has_1_to_512_bytes", []any{long}},
		{"bytes count, not letters", "SELECT bide.schedule('a', $1, now())", "biz_id_has_1_to_512_bytes", []any{wide}},
		{"big payload", "SELECT bide.schedule('a', '1', now(), $1)", "payload_has_at_most_65536_bytes", []any{text(payloadBytes + 1)}},
		{"no type to cancel", "SELECT bide.cancel(NULL, '1')", "biz_type is null", nil},
		{"no id to cancel", "SELECT bide.cancel('a', NULL)", "biz_id is null", nil},
		{"no id to cancel all of", "SELECT bide.cancel_all(NULL)", "biz_id is null", nil},
		{"no type to reschedule", "SELECT bide.reschedule(NULL, '1', now())", "biz_type is null", nil},
		{"no id to reschedule", "SELECT bide.reschedule('a', NULL, now())", "biz_id is null", nil},
		{"no time to reschedule to", "SELECT bide.reschedule('a', '1', NULL)", "fire_at is null", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.pool.Exec(f.ctx, tt.sql, tt.args...)
			var refused *pgconn.PgError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, refused.Message, tt.want)
		})
	}
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.task"))
}

// A task for never, or for a time out of bounds, is refused also where a row
// is there already, free or in execution.
func TestRescheduleRefusesTimesOutOfBounds(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.put("free", time.Hour, "WAITING")
	f.put("running", time.Hour, "RUNNING")
	for _, id := range []string{"free", "running"} {
		for _, at := range []string{"infinity", "-infinity", "1969-12-31", "3000-01-02"} {
			_, err := f.pool.Exec(f.ctx, "SELECT bide.reschedule($1, $2, $3::text::timestamptz)", closeOrder, id, at)
			require.ErrorContains(t, err, "fire_at_is_between_the_years_1970_and_3000", "%s to %s", id, at)
		}
	}
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.delay_task_request"))
}

func TestGoRefusesWhatCannotBeATask(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	now := f.now()
	for _, tt := range []struct {
		name            string
		bizType, bizID  string
		at              time.Time
		payload         any
		want            string
		alsoRescheduled bool
	}{
		{"no time", "a", "1", time.Time{}, nil, "fire_at", true},
		{"before 1970", "a", "1", time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), nil, "fire_at", true},
		{"from 3000 on", "a", "1", time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC), nil, "fire_at", true},
		{"beyond the database's calendar", "a", "1", time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC), nil, "fire_at", true},
		// 2⁶⁴ µs after 1970: counted in 64 bits, an hour after 1970.
		{"beyond what microseconds count", "a", "1", time.Unix(18_446_744_073_709, 551_616_000).Add(time.Hour), nil, "fire_at", true},
		{"Go's last moment", "a", "1", time.Unix(math.MaxInt64-62135596801, 999999999), nil, "fire_at", true},
		{"empty type", "", "1", now, nil, "biz_type_has_1_to_512_bytes", false},
		{"long id", "a", strings.Repeat("x", keyBytes+1), now, nil, "biz_id_has_1_to_512_bytes", false},
		{"a zero byte", "a", "1\x00", now, nil, "0x00", false},
		{"not UTF-8", "a", "\xff", now, nil, "0xff", false},
		{"big payload", "a", "1", now, json.RawMessage(text(payloadBytes + 1)), "payload_has_at_most_65536_bytes", false},
		{"payload that is no JSON", "a", "1", now, json.RawMessage("{"), "payload", false},
		{"payload that JSON cannot hold", "a", "1", now, func() {}, "payload", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) error {
				_, err := outbox.DefaultSchema.Schedule(f.ctx, tx, tt.bizType, tt.bizID, tt.at, tt.payload)
				return err
			})
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "schedule ")
			if !tt.alsoRescheduled {
				return
			}
			err = pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) error {
				if _, err := outbox.DefaultSchema.ScheduleIn(f.ctx, tx, "a", "1", time.Hour, nil); err != nil {
					return err
				}
				_, err := outbox.DefaultSchema.Reschedule(f.ctx, tx, "a", "1", tt.at)
				return err
			})
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "reschedule ")
		})
	}
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.task"))
}

func TestTheLargestTaskIsATask(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	bizType, bizID := strings.Repeat("t", keyBytes), strings.Repeat("ä", keyBytes/2)
	last := time.Date(2999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	for _, at := range []time.Time{last, time.Unix(0, 0)} {
		require.NoError(t, pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) error {
			_, err := outbox.DefaultSchema.Schedule(f.ctx, tx, bizType, bizID, at, json.RawMessage(text(payloadBytes)))
			return err
		}))
		require.WithinDuration(t, at, value[time.Time](f, "SELECT fire_at FROM bide.task WHERE length(payload::text) = 65536"), 0)
	}
	f.execute("DONE", value[int64](f, "SELECT id FROM bide.delay_task"))
	require.Equal(t, "DONE", f.state(bizID), "history holds it as well")
}

// text is a JSON text of n bytes.
func text(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
