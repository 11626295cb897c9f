package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Whichever way an application asks, the task is part of its transaction.
func TestOrderAndTaskCommitOrVanishTogether(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ways := map[string]func(ctx context.Context, tx pgx.Tx, id string) error{
		"SQL": func(ctx context.Context, tx pgx.Tx, id string) error {
			_, err := tx.Exec(ctx, "SELECT bide.schedule_in('close_order', $1, interval '5 s')", id)
			return err
		},
		"a bare INSERT": func(ctx context.Context, tx pgx.Tx, id string) error {
			_, err := tx.Exec(ctx, "INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) VALUES ('close_order', $1, now() + interval '5 s')", id)
			return err
		},
		"Go": func(ctx context.Context, tx pgx.Tx, id string) error {
			_, err := s.ledger.Schema().ScheduleIn(ctx, tx, "close_order", id, 5*time.Second, nil)
			return err
		},
	}
	errChanged := errors.New("the customer has gone")
	endings := map[string]func(tx pgx.Tx) error{
		"commit":               func(pgx.Tx) error { return nil },
		"rollback":             func(pgx.Tx) error { return errChanged },
		"lost connection":      func(tx pgx.Tx) error { return tx.Conn().PgConn().Conn().Close() },
		"statement that fails": func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), "SELECT 1 / 0"); return err },
	}
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	for way, schedule := range ways {
		for ending, end := range endings {
			err := s.tx(t.Context(), func(tx pgx.Tx) error {
				var id string
				err := tx.QueryRow(t.Context(), "INSERT INTO shop.orders (deadline) VALUES (now() + interval '5 s') RETURNING id::text").Scan(&id)
				if err != nil {
					return err
				}
				if err := schedule(t.Context(), tx, id); err != nil {
					return err
				}
				return end(tx)
			})
			require.Equal(t, ending == "commit", err == nil, "%s, %s: %v", way, ending, err)
		}
	}
	require.Equal(t, len(ways), s.count(t, "SELECT count(*) FROM shop.orders o JOIN bide.delay_task d ON d.biz_id = o.id::text"))
	require.Equal(t, len(ways), s.count(t, "SELECT count(*) FROM bide.delay_task"))
	s.awaitDone(t, 20*time.Second)
	require.Equal(t, len(ways), s.requireKept(t, promised).Closed)
}
