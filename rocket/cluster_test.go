package rocket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/rocket"
)

// TestTwoBrokers: while one of two is dead the relay goes on with the other,
// although the name server lists both, and the worker says that it misses one.
func TestTwoBrokers(t *testing.T) {
	a := newOwn(t, "5")
	b := newOwn(t, "5", "namesrvAddr="+a.nameServer, "brokerName=broker-b")
	cfg := a.config(rocket.Auto)
	require.Eventually(t, func() bool { return len(discover(t, cfg).Brokers) == 2 }, patience, 100*time.Millisecond)
	p, in := run(t, cfg), subscribe(t, cfg, true)
	publish := func(first, n int64) {
		for id := first; id < first+n; id++ {
			confirm(t, p, now(cfg, id))
		}
	}
	publish(1, 40)
	in.all(t, sequence(1, 40))

	b.do(t, "kill")
	await(t, in, bide.SessionDown)
	await(t, p, bide.SessionUp)
	publish(101, 40)
	in.all(t, sequence(101, 40))
	require.Equal(t, bide.SessionDown, in.Session().State, "it misses a broker")
	require.ErrorContains(t, in.Session().Err, "broker-b")

	b.do(t, "restart")
	await(t, in, bide.SessionUp)
	await(t, p, bide.SessionUp)
	publish(201, 40)
	in.all(t, sequence(201, 40))
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
