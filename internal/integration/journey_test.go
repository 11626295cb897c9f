package integration

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/outbox"
	"github.com/bide-mq/bide/rabbit"
)

// reschedule moves the orders' deadlines, as an application does, and returns
// what the ledger answered.
func (s *shop) reschedule(t testing.TB, orders []order, to time.Time) map[outbox.Answer]int {
	t.Helper()
	answers := map[outbox.Answer]int{}
	require.NoError(t, s.tx(t.Context(), func(tx pgx.Tx) error {
		for _, o := range orders {
			if _, err := tx.Exec(t.Context(), "UPDATE shop.orders SET deadline = $2 WHERE id = $1", o.id, to); err != nil {
				return err
			}
			answer, err := s.ledger.Schema().Reschedule(t.Context(), tx, "close_order", o.key(), to)
			if err != nil {
				return err
			}
			answers[answer]++
		}
		return nil
	}))
	return answers
}

func TestRescheduleAfterTheMessageLeft(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *system{
		"RabbitMQ": func(t testing.TB) *system { return newSystem(t) }, "RocketMQ timers": byTimers,
	} {
		for when, by := range map[string]time.Duration{"earlier": -time.Second, "later": 5 * time.Second} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				s := open(t)
				s.startRelay(t, relaySpec{})
				s.startWorker(t, workerSpec{})
				orders := s.place(t, 50, 4300*time.Millisecond, 0)
				require.Eventually(t, func() bool { return s.tally.outcomes()[bide.Confirmed] == len(orders) }, 10*time.Second, time.Millisecond)
				remaining := time.Until(orders[0].deadline)
				answers := s.reschedule(t, orders, time.Now().Add(max(remaining+by, 500*time.Millisecond)))
				require.Equal(t, map[outbox.Answer]int{outbox.Moved: len(orders)}, answers)
				s.awaitDone(t, 20*time.Second)
				s.requireKept(t, promised)
				require.Eventually(t, func() bool { return s.tally.of(worker.Stale) == len(orders) }, 10*time.Second, 10*time.Millisecond,
					"the first messages arrived and meant nothing")
			})
		}
	}
}

func TestShortDelayDoesNotWaitBehindALongOne(t *testing.T) {
	t.Parallel()
	onRabbit := func(of rabbit.QueueType) func(testing.TB) *system {
		return func(t testing.TB) *system {
			s := newSystem(t)
			s.site.Rabbit.QueueType = of
			s.site.Rabbit.Tiers = levels.Table{5 * time.Second, 30 * time.Minute}
			return s
		}
	}
	for name, open := range map[string]func(testing.TB) *system{
		"quorum": onRabbit(rabbit.Quorum), "classic": onRabbit(rabbit.Classic),
		"RocketMQ levels": byLevels, "RocketMQ timers": byTimers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.startRelay(t, relaySpec{})
			s.startWorker(t, workerSpec{})
			long := s.place(t, 200, 30*time.Minute+100*time.Millisecond, 50*time.Millisecond)
			s.await(t, 10*time.Second, 1, "SELECT 1 FROM bide.delay_task WHERE status = 'SENT' HAVING count(*) >= 20")
			// At different moments, so that a pause of the machine, in which some miss
			// the tier, does not catch all.
			short := s.place(t, 200, 5300*time.Millisecond, 10*time.Millisecond)
			s.await(t, 20*time.Second, len(short), "SELECT count(*) FROM shop.orders WHERE status = 'CLOSED'")
			require.Greater(t, s.via(t, "broker"), len(short)/2)
			v := s.judge(t)
			require.Equal(t, len(long), v.Lost, "they have time")
			require.Zero(t, v.Early+v.Double)
			require.Less(t, v.latest(), promised)
		})
	}
}

func TestTwoLedgersOnOneVhost(t *testing.T) {
	t.Parallel()
	t.Run("each takes its own messages", func(t *testing.T) {
		t.Parallel()
		one, other := newSystem(t), newSystem(t)
		runBoth(t, one, other)
		require.Zero(t, one.tally.of(worker.Foreign)+other.tally.of(worker.Foreign))
		require.NotZero(t, one.via(t, "broker"))
		require.NotZero(t, other.via(t, "broker"))
	})
	t.Run("also where their queues have the same names", func(t *testing.T) {
		t.Parallel()
		one, other := newSystem(t), newShop(t)
		other.exec(t, "UPDATE bide.ledger SET id = (left($1, 8) || substr(id::text, 9))::uuid", one.ledger.ID().String())
		ledger, err := outbox.Open(t.Context(), other.pool, outbox.DefaultSchema)
		require.NoError(t, err)
		other.ledger = ledger
		namesake := connect(t, other, one.site.Rabbit.URL)
		require.Equal(t, one.site.Rabbit.Queues(), namesake.site.Rabbit.Queues())
		runBoth(t, one, namesake)
		require.NotZero(t, one.tally.of(worker.Foreign)+namesake.tally.of(worker.Foreign), "they did meet")
	})
}

func runBoth(t testing.TB, systems ...*system) {
	t.Helper()
	for _, s := range systems {
		s.startRelay(t, relaySpec{})
		s.startWorker(t, workerSpec{})
	}
	for _, s := range systems {
		s.place(t, 200, time.Second, 10*time.Millisecond)
	}
	for _, s := range systems {
		s.awaitDone(t, 20*time.Second)
		require.Equal(t, 200, s.requireKept(t, 10*time.Second).Closed)
	}
}

func TestTypeWithoutAHandlerStaysUntilAWorkerThatHasOneSweepsIt(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	s.exec(t, "SELECT bide.schedule_in('send_reminder', n::text, interval '1 s') FROM generate_series(1, 20) AS n")
	require.Eventually(t, func() bool { return s.tally.of(worker.Unhandled) == 20 }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 20, s.count(t, "SELECT count(*) FROM bide.delay_task WHERE status = 'SENT'"))

	s.exec(t, "CREATE TABLE shop.reminder (order_id text PRIMARY KEY, at timestamptz DEFAULT clock_timestamp())")
	s.startWorker(t, workerSpec{handlers: map[string]handler.Handler{"send_reminder": handler.Func(remind)}})
	s.awaitDone(t, 20*time.Second)
	require.Equal(t, 20, s.count(t, "SELECT count(*) FROM shop.reminder"))
	require.Equal(t, 20, s.via(t, "sweep"))
	s.requireAudit(t, 0)
}

// remind is a handler in Go, which acts inside the transaction.
func remind(ctx context.Context, tx pgx.Tx, tasks []bide.Task) ([]handler.Result, error) {
	_, err := tx.Exec(ctx, "INSERT INTO shop.reminder (order_id) VALUES ($1)", tasks[0].BizID)
	return []handler.Result{{Verdict: handler.Done}}, err
}
