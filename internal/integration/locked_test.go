package integration

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Somebody holds many more overdue orders than one scan finds, for seconds. Orders
// that are due later are closed meanwhile.
func TestManyLockedOrdersDoNotHoldUpTheSweep(t *testing.T) {
	t.Parallel()
	s := withoutBroker(t)
	held := s.place(t, 3000, time.Second, 100*time.Microsecond)
	free := s.place(t, 100, 3*time.Second, 0)
	s.startWorker(t, workerSpec{})
	require.NoError(t, s.tx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SELECT FROM shop.orders WHERE id <= $1 FOR UPDATE", held[len(held)-1].id)
		if err == nil {
			await(t.Context(), time.Until(free[0].deadline.Add(3*time.Second)))
		}
		return err
	}))
	require.Equal(t, len(free), s.closedWithin(t, 2*time.Second))
	s.awaitDone(t, 10*time.Second)
	require.Equal(t, len(held)+len(free), s.requireKept(t, time.Minute).Closed)
}
