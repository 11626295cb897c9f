package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/outbox"
)

func TestPoisonRowInABatchOf200(t *testing.T) {
	t.Parallel()
	for name, open := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			orders := s.place(t, 200, 2*time.Second, 0)
			poisonous := orders[123]
			s.exec(t, `CREATE FUNCTION shop.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'poison'; END $$`)
			s.exec(t, `CREATE TRIGGER refuse BEFORE UPDATE ON shop.orders FOR EACH ROW WHEN (OLD.id = `+poisonous.key()+`) EXECUTE FUNCTION shop.refuse()`)
			s.startEngine(t, workerSpec{backoff: outbox.Backoff{MaxAttempts: 3, First: 100 * time.Millisecond, Most: time.Second}})

			s.await(t, 20*time.Second, 1, "SELECT count(*) FROM bide.delay_task WHERE status = 'FAILED'")
			s.awaitDone(t, 5*time.Second)
			s.awaitCounts(t, map[worker.Event]int{worker.GivenUp: 1}) // the alarm
			require.Equal(t, 199, s.closedWithin(t, 20*time.Second), "its neighbours do not wait for it")
			require.Equal(t, 1, s.count(t, "SELECT count(*) FROM bide.delay_task WHERE biz_id = $1 AND attempts = 3 AND last_error LIKE '%poison%'", poisonous.key()))
			s.requireAudit(t, 1)

			s.exec(t, "DROP TRIGGER refuse ON shop.orders")
			requeued, err := s.ledger.Requeue(t.Context(), outbox.Filter{BizID: poisonous.key()})
			require.NoError(t, err)
			require.Equal(t, 1, requeued)
			s.awaitDone(t, 10*time.Second)
			require.Equal(t, 200, s.requireKept(t, time.Minute).Closed)
		})
	}
}
