package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/rocket"
)

func TestRocketMQUnderLoad(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name, line string
		mode       rocket.Mode
	}{{"levels on 4.9", "4", rocket.Levels}, {"levels on 5.5", "5", rocket.Levels}, {"timers on 5.5", "5", rocket.Timers}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s := newRocketSystem(t, way.line, way.mode)
			s.startRelay(t, relaySpec{})
			s.startWorker(t, workerSpec{})
			s.startWorker(t, workerSpec{})
			s.underLoad(t, 4, 7*time.Second, func() { await(t.Context(), 6*time.Second) })
			s.awaitDone(t, 20*time.Second)
			v := s.requireKept(t, promised)
			require.Greater(t, v.Closed, 200)
			require.Less(t, s.via(t, "sweep"), v.Closed/10)
		})
	}
}

// One broker of each line serves all outages, one after the other. The one with
// timers has odd settings, which are tried at last. No other test runs beside
// these two: a broker's start takes 20 s of processor time.
func TestRocketMQOutageUnderLoad(t *testing.T) {
	t.Run("levels", func(t *testing.T) {
		t.Parallel()
		testRocketOutages(t, startServer(t, "rocketmq4"), rocket.Levels)
	})
	t.Run("timers", func(t *testing.T) {
		t.Parallel()
		broker := startServer(t, "rocketmq5", "timerMaxDelaySec=40", "messageDelayLevel=4s 1s 2s 1m")
		testRocketOutages(t, broker, rocket.Timers)
		t.Run("delays beyond timerMaxDelaySec", func(t *testing.T) {
			t.Parallel()
			testBeyondTheLongestTimer(t, broker)
		})
		t.Run("levels of the operator's own", func(t *testing.T) {
			t.Parallel()
			testOwnLevels(t, broker)
		})
	})
}

func testRocketOutages(t *testing.T, broker *server, mode rocket.Mode) {
	t.Run("killed and restarted", func(t *testing.T) {
		s := connectRocket(t, newShop(t), broker.url, mode)
		s.survive(t, func() {
			broker.do(t, "kill")
			s.restartRocket(t, broker)
		})
	})
	t.Run("store deleted", func(t *testing.T) {
		// Later than a restart may take on a busy machine, and within the longest
		// timer.
		lost := 39 * time.Second
		if mode == rocket.Levels {
			lost = time.Minute + 200*time.Millisecond
		}
		s := connectRocket(t, newShop(t), broker.url, mode)
		back := s.survive(t, func() {
			s.place(t, 100, lost, 20*time.Millisecond)
			s.await(t, 10*time.Second, 1, "SELECT 1 FROM bide.delay_task WHERE status = 'SENT' AND run_at > now() + $1 - interval '10 s' HAVING count(*) >= 20", lost)
			broker.do(t, "kill")
			broker.do(t, "wipe")
			s.restartRocket(t, broker)
		})
		require.NotZero(t, s.count(t, "SELECT count(*) FROM bide.delay_task_history WHERE via = 'sweep' AND fire_at > $1", back.Add(2*time.Second)),
			"what was lost is found although the broker works again")
	})
	// The name server goes on listing it.
	t.Run("mute for 10 s", func(t *testing.T) {
		connectRocket(t, newShop(t), broker.url, mode).survive(t, func() {
			process := broker.rocketProcess(t)
			require.NoError(t, process.Signal(syscall.SIGSTOP))
			await(t.Context(), 10*time.Second)
			require.NoError(t, process.Signal(syscall.SIGCONT))
		})
	})
}

// restartRocket returns when the broker has registered, which may take it half a
// minute on a busy machine.
func (s *system) restartRocket(t testing.TB, broker *server) {
	t.Helper()
	broker.do(t, "restart")
	_, err := discover(t.Context(), *s.site.Rocket)
	require.NoError(t, err)
}

// rocketProcess finds the process of a RocketMQ broker, beside its name server's.
func (s *server) rocketProcess(t testing.TB) *os.Process {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err != nil { // it has ended meanwhile
			continue
		}
		if bytes.HasPrefix(line, []byte("java\x00")) && bytes.Contains(line, []byte("BrokerStartup")) && bytes.Contains(line, []byte("/"+s.name+"/")) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(t, err)
			process, err := os.FindProcess(pid)
			require.NoError(t, err)
			return process
		}
	}
	require.Fail(t, "no process", "of a broker of %s", s.name)
	return nil
}

// What is further off than the broker's longest timer waits in the ledger, and
// no timer is refused.
func testBeyondTheLongestTimer(t *testing.T, broker *server) {
	s := connectRocket(t, newShop(t), broker.url, rocket.Timers)
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	const n = 200
	s.place(t, n, 29*time.Second, 70*time.Millisecond)
	s.awaitDone(t, time.Minute)
	require.Equal(t, n, s.requireKept(t, promised).Closed)
	require.Equal(t, map[bide.Status]int{bide.Confirmed: n}, s.tally.outcomes())
	require.Less(t, s.via(t, "sweep"), n/10)
}

func testOwnLevels(t *testing.T, broker *server) {
	s := connectRocket(t, newShop(t), broker.url, rocket.Levels)
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	s.underLoad(t, 2, 8*time.Second, func() { await(t.Context(), 4*time.Second) })
	s.awaitDone(t, 20*time.Second)
	v := s.requireKept(t, promised)
	require.Less(t, s.via(t, "sweep"), v.Closed/10)
	require.Zero(t, s.tally.of(worker.Early)+s.tally.of(worker.BrokerFault))
}

// Whoever has a session needs no name server.
func TestRocketMQNameServerAwayUnderLoad(t *testing.T) {
	t.Parallel()
	names := brokertest.NewProxy(t, sharedNameServer(t, "5"))
	s := connectRocket(t, newShop(t), names.Addr(), rocket.Timers)
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	s.startWorker(t, workerSpec{})
	s.underLoad(t, 2, 8*time.Second, func() {
		await(t.Context(), 2*time.Second)
		names.Refuse(true)
		names.Cut()
		await(t.Context(), 10*time.Second)
		names.Refuse(false)
		await(t.Context(), 2*time.Second)
	})
	s.awaitDone(t, 20*time.Second)
	v := s.requireKept(t, promised)
	require.Less(t, s.via(t, "sweep"), v.Closed/10)
}

// A 4.x broker takes timer messages and delivers them at once. Asked, it would
// have been refused.
func TestRocketMQTakenForOneWithTimers(t *testing.T) {
	t.Parallel()
	s := newRocketSystem(t, "4", rocket.Timers)
	s.site.Rocket.Version, s.site.Rocket.MaxDelay = "5.5.0", time.Hour
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	const n = 100
	s.place(t, n, 6*time.Second, 20*time.Millisecond)
	s.awaitDone(t, 30*time.Second)
	require.Equal(t, n, s.requireKept(t, promised).Closed)
	require.Equal(t, n, s.count(t, "SELECT count(*) FROM bide.delay_task_history WHERE sends BETWEEN 1 AND 4"), "no loop")
	require.NotZero(t, s.tally.of(worker.BrokerFault))
	require.NotZero(t, s.count(t, "SELECT count(*) FROM bide.delay_task_history WHERE sends >= 3 AND via = 'sweep'"), "the guard was needed")
}
