package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/relay"
)

// The dead relay's batch is older than the lease after a second, when its tasks
// have three more to go: the living relay sends them by a lower level.
func TestRelayKilledInTheMiddleOfABatch(t *testing.T) {
	t.Parallel()
	for name, open := range brokers() {
		for _, at := range []failpoint{beforePublish, beforeSettle} {
			t.Run(name+" "+string(at), func(t *testing.T) {
				t.Parallel()
				s := open(t)
				s.startWorker(t, workerSpec{})
				placed := s.place(t, 100, 6*time.Second, 0)

				s.spawn(t, orders{Relay: true, Failpoint: at}).awaitDeath(t, 10*time.Second)
				require.Equal(t, 1, s.count(t, "SELECT count(*) FROM bide.relay_batch"), "the journal stands for the batch")

				s.startRelay(t, relaySpec{Config: relay.Config{Lease: time.Second}})
				s.awaitDone(t, 20*time.Second)
				s.requireKept(t, promised)
				require.Equal(t, len(placed), s.tally.gaveBack())
				require.Zero(t, s.count(t, "SELECT count(*) FROM bide.relay_batch"))
			})
		}
	}
}
