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
	require.LessOrEqual(t, v.latest(), late, "late")
	s.requireAudit(t, 0)
	return v
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
