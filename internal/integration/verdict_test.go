package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// verdict is what the shop's tables say of a run.
type verdict struct {
	Placed, Paid, Closed int
	// Lost orders are UNPAID although their time is over; Early ones were
	// closed before it; Double ones were closed twice, or paid and closed.
	Lost, Early, Double int
	// P50, P99 and Max say how long after the deadline orders were closed, in
	// milliseconds.
	P50, P99, Max float64
}

func (v verdict) String() string {
	return fmt.Sprintf("placed=%d paid=%d closed=%d lost=%d early=%d double=%d p50_ms=%.0f p99_ms=%.0f max_ms=%.0f",
		v.Placed, v.Paid, v.Closed, v.Lost, v.Early, v.Double, v.P50, v.P99, v.Max)
}

// promised is how late a close may be whatever the broker does: 4 s, and half as
// much again for a machine that is busy with other tests.
const promised = 6 * time.Second

// latest is the greatest lateness.
func (v verdict) latest() time.Duration { return time.Duration(v.Max * float64(time.Millisecond)) }

// judge takes the verdict.
func (s *shop) judge(t testing.TB) verdict {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), verdictSQL)
	require.NoError(t, err)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[verdict])
	require.NoError(t, err)
	t.Log(v)
	return v
}

// requireKept requires that every promise was kept, each close at most late
// after its deadline, and that the ledger's own audit agrees.
func (s *shop) requireKept(t testing.TB, late time.Duration) verdict {
	t.Helper()
	v := s.judge(t)
	require.Zero(t, v.Lost, "lost")
	require.Zero(t, v.Early, "early")
	require.Zero(t, v.Double, "double")
	if v.latest() > late {
		require.Fail(t, "late", "%s late, at most %s: %s", v.latest(), late, s.laggards(t))
	}
	s.requireAudit(t, 0)
	return v
}

// laggards describes how the latest closes came about.
func (s *shop) laggards(t testing.TB) (text string) {
	t.Helper()
	err := s.pool.QueryRow(t.Context(), `
		SELECT string_agg(format('%s tasks of second %s via %s, sent %s times, %s attempts, %s reclaims: %s', n, second, via, sends, attempts, reclaims, last_error), '; ')
		  FROM (SELECT count(*) AS n, round(extract(epoch FROM e.at - o.deadline), 1) AS second, h.via, h.sends, h.attempts, h.reclaims, max(h.last_error) AS last_error
		          FROM shop.order_event e JOIN shop.orders o ON o.id = e.order_id JOIN bide.delay_task_history h ON h.biz_id = o.id::text
		         WHERE e.status = 'CLOSED' GROUP BY 2, 3, 4, 5, 6 ORDER BY 2 DESC LIMIT 10) AS d`).Scan(&text)
	require.NoError(t, err)
	return text
}

// requireAudit requires that the ledger keeps its promises but for the number
// of tasks that were given up.
func (s *shop) requireAudit(t testing.TB, failed int) {
	t.Helper()
	audited, err := s.ledger.Audit(t.Context())
	require.NoError(t, err)
	for _, a := range audited {
		want := 0
		if a.Claim == "no task has failed for good" {
			want = failed
		}
		require.Equal(t, want, a.Broken, "%s: %s: %v", a.Promise, a.Claim, a.Examples)
	}
}
