package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/rocket"
)

// fleet is what runs on one broker.
type fleet struct {
	relay   *service
	workers []*service
}

// The procedure is the one in docs/rocketmq.md.
func TestChangeFromRabbitMQToRocketMQAndBackUnderLoad(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]time.Duration{"patiently": 6 * time.Second, "in a hurry": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rabbits := newSystem(t)
			rockets := connectRocket(t, rabbits.shop, sharedNameServer(t, "5"), rocket.Timers)
			rockets.site.Rocket.Horizon = 5 * time.Second
			var arrived []int
			look := func() {
				arrived = append(arrived, rabbits.tally.of(worker.Arrived), rockets.tally.of(worker.Arrived))
			}
			rabbits.underLoad(t, 2, 8*time.Second, func() {
				old := rabbits.replace(t, fleet{}, 0)
				await(t.Context(), 5*time.Second)
				look()
				old = rockets.replace(t, old, leave)
				await(t.Context(), 5*time.Second)
				look()
				rabbits.replace(t, old, leave)
				await(t.Context(), 5*time.Second)
			})
			rabbits.awaitDone(t, 30*time.Second)
			look()
			v := rabbits.requireKept(t, promised)
			require.Greater(t, v.Closed, 100)
			t.Logf("arrived by RabbitMQ and RocketMQ at each change: %v", arrived)
			require.NotZero(t, arrived[0], "RabbitMQ carries")
			require.NotZero(t, arrived[3], "RocketMQ carries")
			require.Greater(t, arrived[4], arrived[2], "RabbitMQ carries again")
			if leave > 0 {
				require.Less(t, rabbits.via(t, "sweep"), v.Closed/10)
			}
		})
	}
}

// replace starts a fleet on the system's broker, in place of another one whose
// workers it leaves until their broker is empty.
func (s *system) replace(t testing.TB, old fleet, leave time.Duration) (successor fleet) {
	t.Helper()
	successor.workers = []*service{s.startWorker(t, workerSpec{}), s.startWorker(t, workerSpec{})}
	if old.relay != nil {
		old.relay.stop(t)
	}
	successor.relay = s.startRelay(t, relaySpec{})
	await(t.Context(), leave)
	for _, w := range old.workers {
		w.stop(t)
	}
	return successor
}
