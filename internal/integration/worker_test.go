package integration

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/worker"
)

func TestWorkerKilledBeforeCommit(t *testing.T) {
	t.Parallel()
	for name, open := range brokers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.startRelay(t, relaySpec{})
			s.place(t, 50, 2*time.Second, 0)
			s.spawn(t, orders{Failpoint: beforeCommit}).awaitDeath(t, 20*time.Second)
			require.Zero(t, s.count(t, "SELECT count(*) FROM bide.delay_task_history"), "the effects went with the worker")

			s.startWorker(t, workerSpec{})
			s.awaitDone(t, 20*time.Second)
			require.Equal(t, 50, s.requireKept(t, 10*time.Second).Closed)
		})
	}
}

func TestWorkerKilledAfterCommitBeforeAcknowledge(t *testing.T) {
	t.Parallel()
	for name, open := range brokers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.startRelay(t, relaySpec{})
			s.place(t, 100, 2*time.Second, 0)
			s.spawn(t, orders{Failpoint: beforeAck}).awaitDeath(t, 20*time.Second)
			committed := s.count(t, "SELECT count(*) FROM bide.delay_task_history")
			require.NotZero(t, committed)

			s.startWorker(t, workerSpec{})
			s.awaitDone(t, 20*time.Second)
			require.Eventually(t, func() bool { return s.tally.of(worker.Stale) >= committed }, 10*time.Second, 10*time.Millisecond,
				"the broker did not deliver the finished tasks again")
			s.requireKept(t, 10*time.Second)
		})
	}
}

// Three deaths are the most that a task may cost: one with its whole batch, and
// two alone.
func TestTaskThatKillsItsWorkerEachTime(t *testing.T) {
	t.Parallel()
	for name, open := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			placed := s.place(t, 50, 2*time.Second, 0)
			require.NoError(t, s.setPoison(t.Context(), placed[20]))
			if s.site.hasBroker() {
				s.startRelay(t, relaySpec{})
			}
			deaths := s.keepAlive(t, orders{Failpoint: atPoison})
			s.requireOnlyPoisonFails(t, placed[20], len(placed))
			require.EqualValues(t, 3, deaths.Load())
		})
	}
}

func TestTaskThatKillsItsDatabaseSessionEachTime(t *testing.T) {
	t.Parallel()
	cut := func(conn *pgx.Conn) error { // as when the server's process is killed
		require.NoError(t, conn.PgConn().Conn().Close())
		_, err := conn.Exec(t.Context(), "SELECT")
		return err
	}
	terminate := func(conn *pgx.Conn) error {
		_, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
		return err
	}
	for name, open := range engines() {
		for how, kill := range map[string]func(*pgx.Conn) error{"cut": cut, "terminated": terminate} {
			t.Run(name+" and "+how, func(t *testing.T) {
				t.Parallel()
				s := open(t)
				placed := s.place(t, 50, 2*time.Second, 0)
				require.NoError(t, s.setPoison(t.Context(), placed[20]))
				s.startEngine(t, workerSpec{handler: poisonable(kill)})
				s.requireOnlyPoisonFails(t, placed[20], len(placed))
			})
		}
	}
}

// requireOnlyPoisonFails waits until the poisonous task is given up and
// requires that its neighbours went free.
func (s *system) requireOnlyPoisonFails(t testing.TB, poisonous order, placed int) {
	t.Helper()
	s.awaitDone(t, 40*time.Second)
	require.Equal(t, 1, s.count(t, "SELECT count(*) FROM bide.delay_task WHERE status = 'FAILED' AND biz_id = $1", poisonous.key()))
	v := s.judge(t)
	require.Equal(t, placed-1, v.Closed)
	require.Equal(t, 1, v.Lost)
	require.Zero(t, v.Early+v.Double)
	s.requireAudit(t, 1)
}
