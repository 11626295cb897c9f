package rocket_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rocket"
)

// noticed bounds the time until a session knows that its broker is gone: a
// second, and what a busy machine adds.
const noticed = 2500 * time.Millisecond

// TestBrokerTroubles does to a broker what happens to brokers, while a relay
// publishes and a worker consumes.
func TestBrokerTroubles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, line string
		mode       rocket.Mode
	}{{"4 levels", "4", rocket.Levels}, {"5 timers", "5", rocket.Timers}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOwn(t, tt.line)
			t.Run("killed under load", func(t *testing.T) { testKilled(t, o, o.config(tt.mode)) })
			t.Run("mute", func(t *testing.T) { testMute(t, o, o.config(tt.mode)) })
			t.Run("store deleted", func(t *testing.T) { testStoreDeleted(t, o, o.config(tt.mode)) })
		})
	}
}

func testKilled(t *testing.T, o *own, cfg rocket.Config) {
	p, in := run(t, cfg), subscribe(t, cfg, true)
	load := startLoad(t, p, cfg)
	pause(3 * time.Second)
	o.do(t, "kill")
	require.Less(t, await(t, p, bide.SessionDown), noticed)
	require.Less(t, await(t, in, bide.SessionDown), noticed)
	began := time.Now()
	for _, outcome := range p.Publish(t.Context(), []bide.Send{now(cfg, 1e6), now(cfg, 1e6+1)}) {
		require.Equal(t, bide.Refused, outcome.Status)
		require.ErrorIs(t, outcome.Err, bide.ErrSessionDown)
	}
	require.Less(t, time.Since(began), time.Second, "a relay does not wait for a broker that is down")
	o.do(t, "restart")
	await(t, p, bide.SessionUp)
	await(t, in, bide.SessionUp)
	pause(3 * time.Second)
	ids := load.stop()
	require.NotEmpty(t, ids)
	in.all(t, ids)
}

func testMute(t *testing.T, o *own, cfg rocket.Config) {
	p, in := run(t, cfg), subscribe(t, cfg, true)
	confirm(t, p, now(cfg, 1))
	in.all(t, []int64{1})
	load := startLoad(t, p, cfg)
	pause(time.Second)
	o.do(t, "pause")
	require.Less(t, await(t, p, bide.SessionDown), noticed)
	require.Less(t, await(t, in, bide.SessionDown), noticed)
	began := time.Now()
	for _, outcome := range p.Publish(t.Context(), []bide.Send{now(cfg, 1e6)}) {
		require.NotEqual(t, bide.Confirmed, outcome.Status)
		require.ErrorIs(t, outcome.Err, bide.ErrSessionDown)
	}
	require.Less(t, time.Since(began), cfg.ConfirmTimeout+time.Second)
	pause(8 * time.Second) // the session is given up meanwhile
	require.Equal(t, bide.SessionDown, p.Session().State)
	o.do(t, "resume")
	await(t, p, bide.SessionUp)
	await(t, in, bide.SessionUp)
	pause(time.Second)
	in.all(t, load.stop())
}

// testStoreDeleted: the topic is gone with the store, and so is what the group
// had acknowledged.
func testStoreDeleted(t *testing.T, o *own, cfg rocket.Config) {
	p, in := run(t, cfg), subscribe(t, cfg, true)
	for id := range int64(100) {
		confirm(t, p, now(cfg, id+1))
	}
	in.all(t, []int64{100})
	o.do(t, "kill")
	o.do(t, "wipe")
	o.do(t, "restart")
	await(t, p, bide.SessionUp)
	await(t, in, bide.SessionUp)
	confirm(t, p, now(cfg, 1000), now(cfg, 1001), now(cfg, 1002))
	in.all(t, []int64{1000, 1001, 1002})
}

// TestListedAndDead: the name server goes on listing a broker that nobody can
// reach.
func TestListedAndDead(t *testing.T) {
	t.Parallel()
	proxied, broker := through(t, shared(t, "5"))
	cfg := proxied.config(rocket.Auto)
	p, in := run(t, cfg), subscribe(t, cfg, true)
	confirm(t, p, now(cfg, 1))
	broker.Refuse(true)
	broker.Cut()
	require.Less(t, await(t, p, bide.SessionDown), noticed)
	require.Less(t, await(t, in, bide.SessionDown), noticed)
	pause(2 * time.Second)
	began := time.Now()
	outcome := p.Publish(t.Context(), []bide.Send{now(cfg, 2)})[0]
	require.Equal(t, bide.Refused, outcome.Status)
	require.ErrorIs(t, outcome.Err, bide.ErrSessionDown)
	require.Less(t, time.Since(began), time.Second)
	require.ErrorIs(t, p.Session().Err, bide.ErrSessionDown)

	broker.Refuse(false)
	await(t, p, bide.SessionUp)
	await(t, in, bide.SessionUp)
	confirm(t, p, now(cfg, 3))
	in.all(t, []int64{3})
}

// TestSilentNetwork: connections stay open and nothing comes through.
func TestSilentNetwork(t *testing.T) {
	t.Parallel()
	proxied, broker := through(t, shared(t, "5"))
	cfg := proxied.config(rocket.Auto)
	p, in := run(t, cfg), subscribe(t, cfg, true)
	confirm(t, p, now(cfg, 1))
	broker.Pause()
	require.Less(t, await(t, p, bide.SessionDown), noticed)
	require.Less(t, await(t, in, bide.SessionDown), noticed)
	broker.Resume()
	await(t, p, bide.SessionUp)
	await(t, in, bide.SessionUp)
	confirm(t, p, now(cfg, 2))
	in.all(t, []int64{1, 2})
}

// TestNameServerAway: whoever has a session goes on without name servers.
func TestNameServerAway(t *testing.T) {
	t.Parallel()
	i := shared(t, "5")
	names := brokertest.NewProxy(t, i.nameServer)
	i.nameServer = names.Addr()
	cfg := i.config(rocket.Auto)
	p, in := run(t, cfg), subscribe(t, cfg, true)
	names.Refuse(true)
	names.Cut()
	for id := range int64(20) {
		confirm(t, p, now(cfg, id+1), inTimer(cfg, id+101))
		pause(100 * time.Millisecond)
	}
	require.Equal(t, bide.SessionUp, p.Session().State)
	require.Equal(t, bide.SessionUp, in.Session().State)
	in.all(t, []int64{1, 20, 101, 120})

	late := newSubscriber(t, cfg)
	_, err := rocket.Discover(t.Context(), cfg)
	require.ErrorIs(t, err, bide.ErrSessionDown)
	require.NotErrorAs(t, err, new(*bide.Fault), "another attempt may go better: %v", err)
	require.Equal(t, bide.SessionDown, late.Session().State)
}

func inTimer(cfg rocket.Config, id int64) bide.Send { return in(cfg, id, bide.LevelTimer, time.Second) }

// TestOneOfSeveralNameServers: the first of the list is dead and the second has
// a name that has to be looked up.
func TestOneOfSeveralNameServers(t *testing.T) {
	t.Parallel()
	i := shared(t, "4")
	cfg := i.config(rocket.Auto)
	_, port, err := net.SplitHostPort(i.nameServer)
	require.NoError(t, err)
	cfg.NameServers = []string{"127.0.0.1:1", "localhost:" + port}
	p, in := run(t, cfg), subscribe(t, cfg, true)
	confirm(t, p, now(cfg, 1))
	in.all(t, []int64{1})
}
