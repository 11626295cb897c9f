package outbox

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whoever has waited for deadlock_timeout looks for a deadlock and is its
// victim. An execution cannot hold a lock that long after it was last heard
// of: one statement and one pause are shorter together.
func TestLimitsSumBelowTheDeadlockTimeout(t *testing.T) {
	t.Parallel()
	require.Equal(t, limits{statement: 600, idle: 300}, limitsFor(1000), "PostgreSQL's default")
	rapid.Check(t, func(t *rapid.T) {
		deadlock := rapid.Int64Range(3, 1<<31-1).Draw(t, "deadlock_timeout") // milliseconds, up to the server's limit
		l := limitsFor(deadlock)
		require.Less(t, l.statement+l.idle, deadlock)
		require.Positive(t, l.statement) // 0 would be without end
		require.Positive(t, l.idle)
		require.GreaterOrEqual(t, l.statement, l.idle)
	})
}
