package rocket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/rocket"
)

// TestTwoBrokers: while one of two is mute the relay goes on with the other,
// although the name server lists both, and the worker says that it misses one.
// One that is killed leaves the list at once.
func TestTwoBrokers(t *testing.T) {
	t.Parallel()
	a := newOwn(t, "5")
	b := newOwn(t, "5", "namesrvAddr="+a.nameServer, "brokerName=broker-b")
	cfg := a.config(rocket.Auto)
	require.Eventually(t, func() bool { return len(discover(t, cfg).Brokers) == 2 }, patience, 100*time.Millisecond)
	p, in := run(t, cfg), subscribe(t, cfg, true)
	publish := func(first int64) []int64 {
		t.Helper()
		ids := sequence(first, 40)
		for _, id := range ids {
			confirm(t, p, now(cfg, id))
		}
		return ids
	}
	in.all(t, publish(100))

	b.do(t, "pause")
	await(t, in, bide.SessionDown)
	require.ErrorContains(t, in.Session().Err, "broker-b")
	pause(2 * time.Second) // sends that were under way have failed
	await(t, p, bide.SessionUp)
	meanwhile := publish(200)
	pause(8 * time.Second) // the session has been given up, and begun anew
	await(t, p, bide.SessionUp)
	meanwhile = append(meanwhile, publish(300)...)
	require.Equal(t, bide.SessionDown, in.Session().State)
	b.do(t, "resume")
	await(t, in, bide.SessionUp)
	await(t, p, bide.SessionUp)
	in.all(t, append(meanwhile, publish(400)...))

	b.do(t, "kill")
	await(t, in, bide.SessionDown)
	await(t, p, bide.SessionUp)
	in.all(t, publish(500))
	b.do(t, "restart")
	in.all(t, publish(600))
}

func sequence(first, n int64) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = first + int64(i)
	}
	return ids
}

// TestTwoClusters: which of them is meant has to be said.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	a := newOwn(t, "4")
	newOwn(t, "4", "namesrvAddr="+a.nameServer, "brokerName=broker-b", "brokerClusterName=Other")
	cfg := a.config(rocket.Auto)
	requireFault(t, awaitFault(t, cfg), "rocketmq "+a.nameServer, "several clusters: DefaultCluster, Other", "set the cluster")
	cfg.Cluster = "Other"
	facts := discover(t, cfg)
	require.Len(t, facts.Brokers, 1)
	require.Equal(t, "broker-b", facts.Brokers[0].Name)
	p, in := run(t, cfg), subscribe(t, cfg, true)
	confirm(t, p, now(cfg, 1))
	in.all(t, []int64{1})
}
