package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/relay"
	"github.com/bide-mq/bide/internal/worker"
)

// A message that comes back at once still fits the tier that it came from: the
// longest way to go round in a circle.
func TestPolicyThatShortensATiersTTL(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.site.Rabbit.Lead, s.site.Rabbit.Slack = 50*time.Millisecond, 400*time.Millisecond
	s.startRelay(t, relaySpec{Config: relay.Config{Poll: 20 * time.Millisecond}})
	s.startWorker(t, workerSpec{})
	s.setPolicy(t, s.tier(3), `{"message-ttl": 1}`)
	const n = 100
	s.place(t, n, 5*time.Second, 20*time.Millisecond)
	s.awaitDone(t, 20*time.Second)
	s.requireKept(t, promised)
	// A fourth is for a message that was so slow that it was hardly early.
	require.Equal(t, n, s.count(t, "SELECT count(*) FROM bide.delay_task_history WHERE sends BETWEEN 1 AND 4"), "no loop")
	require.NotZero(t, s.tally.of(worker.BrokerFault))
	require.NotZero(t, s.count(t, "SELECT count(*) FROM bide.delay_task_history WHERE sends >= 3 AND via = 'sweep'"), "the guard was needed")
}
