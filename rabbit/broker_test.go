package rabbit_test

import (
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rabbit"
)

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// variable is one that the test environment provides.
func variable(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	require.NotEmpty(t, value, "%s is not set: run the tests by `make test`, which provides it", name)
	return value
}

func sharedURL(t testing.TB) string { return variable(t, "BIDE_TEST_RABBITMQ_URL") }

// config is a configuration with tiers that a test can wait for.
func config(address string) rabbit.Config {
	cfg := rabbit.Config{
		URL:          address,
		Ledger:       brokertest.NewLedger(),
		Tiers:        levels.Table{400 * time.Millisecond, time.Second, 2 * time.Second},
		Lead:         50 * time.Millisecond,
		Slack:        100 * time.Millisecond,
		DrainTimeout: time.Second,
	}.WithDefaults()
	return cfg
}

// admin is a connection for the test's own business.
func admin(t testing.TB, address string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	require.NoError(t, err)
	return ch
}

// deleteQueues removes the queues of the configuration, of both types. A
// broker that is gone has none.
func deleteQueues(t testing.TB, cfg rabbit.Config) {
	conn, err := amqp.Dial(cfg.URL)
	if err != nil {
		return
	}
	defer conn.Close()
	for _, of := range []rabbit.QueueType{rabbit.Quorum, rabbit.Classic} {
		cfg.QueueType = of
		for _, name := range cfg.Queues() {
			ch, err := conn.Channel()
			require.NoError(t, err)
			_, err = ch.QueueDelete(name, false, false, false)
			require.NoError(t, err)
			ch.Close()
		}
	}
}

// through returns the URL with the proxy's address in it.
func through(t testing.TB, address string, proxy *brokertest.Proxy) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.Host = proxy.Addr()
	return u.String()
}

func hostOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Host
}

// logger writes to the test's log, and nothing once the test is over.
func logger(t testing.TB) *slog.Logger {
	w := &testWriter{t: t}
	t.Cleanup(w.stop)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
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

func newPublisher(t testing.TB, cfg rabbit.Config) *rabbit.Publisher {
	t.Helper()
	p, err := rabbit.NewPublisher(cfg, logger(t))
	require.NoError(t, err)
	return p
}

func newSubscriber(t testing.TB, cfg rabbit.Config) *rabbit.Subscriber {
	t.Helper()
	s, err := rabbit.NewSubscriber(cfg, logger(t))
	require.NoError(t, err)
	return s
}

var _ brokertest.Publisher = (*rabbit.Publisher)(nil)

var _ bide.Subscriber = (*rabbit.Subscriber)(nil)
