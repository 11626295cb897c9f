package integration

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rabbit"
)

// system is a shop and the services that close its orders.
type system struct {
	*shop
	site  site
	tally *tally
	log   *slog.Logger
}

// newSystem makes a system on the shared servers, without any service yet.
func newSystem(t testing.TB, settings ...string) *system {
	t.Helper()
	return connect(t, newShop(t, settings...), variable(t, "BIDE_TEST_RABBITMQ_URL"))
}

// withoutBroker makes a system whose engine is the sweep.
func withoutBroker(t testing.TB) *system {
	t.Helper()
	s := newShop(t)
	return &system{shop: s, site: site{DatabaseURL: s.url}, tally: newTally(), log: logger(t)}
}

// connect gives a shop a broker. Its levels are ones that a test can wait for.
func connect(t testing.TB, s *shop, brokerURL string) *system {
	t.Helper()
	cfg := rabbit.Config{
		URL: brokerURL, Prefix: "test", Ledger: s.ledger.ID(),
		Tiers:        levels.Table{time.Second, 2 * time.Second, 4 * time.Second},
		DrainTimeout: 8 * time.Second,
	}.WithDefaults()
	sys := &system{shop: s, site: site{DatabaseURL: s.url, Rabbit: &cfg}, tally: newTally(), log: logger(t)}
	t.Cleanup(func() {
		cfg.URL = brokerURL // past any proxy
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := rabbit.DeleteQueues(ctx, cfg); err != nil {
			t.Logf("delete queues: %v", err)
		}
	})
	return sys
}

// service is a relay or a worker that runs in this process.
type service struct {
	cancel context.CancelFunc
	ended  chan error
	once   sync.Once
	// held is the number of tasks that a worker holds.
	held func() int
}

// stopWithin bounds every shutdown, as the promise does.
const stopWithin = 10 * time.Second

// stop ends the service as SIGTERM does.
func (s *service) stop(t testing.TB) {
	t.Helper()
	s.once.Do(func() {
		s.cancel()
		select {
		case err := <-s.ended:
			require.NoError(t, err)
		case <-time.After(stopWithin):
			require.Fail(t, "the service does not stop")
		}
	})
}

func start(t testing.TB, run func(context.Context) error) *service {
	ctx, cancel := context.WithCancel(context.Background())
	s := &service{cancel: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- run(ctx) }()
	t.Cleanup(func() { s.stop(t) })
	return s
}

// startRelay starts a relay and waits until it can publish.
func (s *system) startRelay(t testing.TB, spec relaySpec) *service {
	t.Helper()
	p, err := s.site.newProducer(t.Context(), spec, s.tally, s.log)
	require.NoError(t, err)
	service := start(t, p.run)
	awaitUp(t, p.publisher)
	return service
}

// startWorker starts a worker and waits until deliveries can arrive.
func (s *system) startWorker(t testing.TB, spec workerSpec) *service {
	t.Helper()
	c, err := s.site.newConsumer(t.Context(), spec, s.tally, s.log)
	require.NoError(t, err)
	service := start(t, c.run)
	service.held = c.worker.Held
	if c.subscriber != nil {
		awaitUp(t, c.subscriber)
	}
	return service
}

func awaitUp(t testing.TB, driver interface{ Session() bide.Session }) {
	t.Helper()
	require.Eventually(t, func() bool { return driver.Session().State == bide.SessionUp },
		20*time.Second, 5*time.Millisecond, "no session")
}

// tally counts what relays and workers report.
type tally struct {
	mu        sync.Mutex
	events    map[worker.Event]int
	published map[bide.Status]int
	recovered int
}

func newTally() *tally {
	return &tally{events: map[worker.Event]int{}, published: map[bide.Status]int{}}
}

func (c *tally) count(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *tally) Claimed(int)           {}
func (c *tally) Quarantined(int, bool) {}
func (c *tally) Recovered(n int)       { c.count(func() { c.recovered += n }) }
func (c *tally) Published(_ int, status bide.Status, n int) {
	c.count(func() { c.published[status] += n })
}
func (c *tally) Finished(string, bide.Result, bide.Via, time.Duration) {}
func (c *tally) Count(event worker.Event, n int)                       { c.count(func() { c.events[event] += n }) }

// outcomes returns the fates of all messages.
func (c *tally) outcomes() (fates map[bide.Status]int) {
	c.count(func() { fates = maps.Clone(c.published) })
	return fates
}

// of returns how often an event happened.
func (c *tally) of(event worker.Event) (n int) {
	c.count(func() { n = c.events[event] })
	return n
}

// gaveBack returns how many tasks of dead relays were given back.
func (c *tally) gaveBack() (n int) {
	c.count(func() { n = c.recovered })
	return n
}

// logger writes to the test's log, and nothing once the test is over.
func logger(t testing.TB) *slog.Logger {
	w := &testWriter{t: t}
	t.Cleanup(w.stop)
	return slog.New(slog.NewTextHandler(w, nil))
}

type testWriter struct {
	mu   sync.Mutex
	t    testing.TB
	over bool
}

func (w *testWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.t.Log(strings.TrimSuffix(string(b), "\n"))
	}
	return len(b), nil
}

func (w *testWriter) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// brokers are the ways in which messages travel.
func brokers() map[string]func(testing.TB) *system {
	return map[string]func(testing.TB) *system{
		"RabbitMQ":        func(t testing.TB) *system { return newSystem(t) },
		"RocketMQ levels": byLevels,
		"RocketMQ timers": byTimers,
	}
}

// engines are the ways in which tasks come to be executed.
func engines() map[string]func(testing.TB) *system {
	ways := brokers()
	ways["the sweep"] = withoutBroker
	return ways
}

// startEngine starts a worker, and a relay where there is a broker.
func (s *system) startEngine(t testing.TB, spec workerSpec) {
	t.Helper()
	if s.site.hasBroker() {
		s.startRelay(t, relaySpec{})
	}
	s.startWorker(t, spec)
}
