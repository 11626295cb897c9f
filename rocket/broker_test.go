package rocket_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rocket"
	"github.com/bide-mq/bide/rocket/internal/remoting"
)

func TestMain(m *testing.M) {
	rocket.UseLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(&suite{m}, brokertest.RocketMQLeaks()...)
}

// variable is one that the test environment provides.
func variable(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	require.NotEmpty(t, value, "%s is not set: run the tests by `make test`, which provides it, or `make test ROCKETMQ=off`, which does without", name)
	return value
}

// installation is a name server and its one broker.
type installation struct{ nameServer, broker string }

func shared(t testing.TB, line string) installation {
	return installation{
		nameServer: variable(t, "BIDE_TEST_ROCKETMQ"+line+"_NAMESRV"),
		broker:     variable(t, "BIDE_TEST_ROCKETMQ"+line+"_BROKER"),
	}
}

func (i installation) config(mode rocket.Mode) rocket.Config {
	return rocket.Config{
		NameServers: []string{i.nameServer}, Ledger: brokertest.NewLedger(), Mode: mode,
		DrainTimeout: time.Second, ConfirmTimeout: 5 * time.Second,
	}.WithDefaults()
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

func newPublisher(t testing.TB, cfg rocket.Config) *rocket.Publisher {
	t.Helper()
	p, err := rocket.NewPublisher(cfg, discover(t, cfg), logger(t))
	require.NoError(t, err)
	return p
}

// discover asks until a broker has registered, as services do.
func discover(t testing.TB, cfg rocket.Config) rocket.Facts {
	t.Helper()
	var facts rocket.Facts
	var err error
	require.Eventually(t, func() bool {
		facts, err = rocket.Discover(t.Context(), cfg)
		return err == nil || errors.As(err, new(*bide.Fault))
	}, patience, 50*time.Millisecond, "nothing to discover at %s", cfg)
	require.NoError(t, err)
	return facts
}

func newSubscriber(t testing.TB, cfg rocket.Config) *rocket.Subscriber {
	t.Helper()
	s, err := rocket.NewSubscriber(cfg, logger(t))
	require.NoError(t, err)
	return s
}

var _ brokertest.Publisher = (*rocket.Publisher)(nil)

var _ bide.Subscriber = (*rocket.Subscriber)(nil)

// inject puts a body on the topic as any other program may.
func inject(t testing.TB, cfg rocket.Config, body []byte) {
	t.Helper()
	p, err := rocketmq.NewProducer(
		producer.WithNsResolver(primitive.NewPassthroughResolver(cfg.NameServers)),
		producer.WithInstanceName("inject-"+brokertest.NewLedger().String()),
	)
	require.NoError(t, err)
	require.NoError(t, p.Start())
	defer func() { require.NoError(t, p.Shutdown()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = p.SendSync(ctx, primitive.NewMessage(cfg.Topic(), body))
	require.NoError(t, err)
}

// through puts proxies before both servers: one that can be cut before the
// broker, and one before the name server that tells everybody its address.
func through(t testing.TB, i installation) (installation, *brokertest.Proxy) {
	t.Helper()
	broker := brokertest.NewProxy(t, i.broker)
	names := newNameProxy(t, i.nameServer, i.broker, broker.Addr())
	return installation{nameServer: names, broker: broker.Addr()}, broker
}

// newNameProxy stands before a name server and replaces an address in what it
// says.
func newNameProxy(t testing.TB, target, old, replacement string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var tasks sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() { rename(ctx, conn, target, old, replacement) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		cancel()
		tasks.Wait()
	})
	return listener.Addr().String()
}

func rename(ctx context.Context, client net.Conn, target, old, replacement string) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { client.Close(); server.Close() })
	defer stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		_, _ = io.Copy(server, client)
		server.Close()
	})
	defer client.Close()
	r := bufio.NewReader(server)
	for {
		f, err := remoting.ReadFrame(r)
		if err != nil {
			return
		}
		f.Body = bytes.ReplaceAll(f.Body, []byte(old), []byte(replacement))
		b, err := f.Append(nil)
		if err != nil {
			return
		}
		if _, err := client.Write(b); err != nil {
			return
		}
	}
}
