package integration

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	client "github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rocket"
)

// byLevels makes a system on the shared RocketMQ 4.9, which has delay levels.
func byLevels(t testing.TB) *system { return newRocketSystem(t, "4", rocket.Levels) }

// byTimers makes a system on the shared RocketMQ 5.5, which has timers.
func byTimers(t testing.TB) *system { return newRocketSystem(t, "5", rocket.Timers) }

func newRocketSystem(t testing.TB, line string, mode rocket.Mode) *system {
	t.Helper()
	return connectRocket(t, newShop(t), sharedNameServer(t, line), mode)
}

func sharedNameServer(t testing.TB, line string) string {
	t.Helper()
	name := "BIDE_TEST_ROCKETMQ" + line + "_NAMESRV"
	address := os.Getenv(name)
	require.NotEmpty(t, address, "%s is not set: run the tests with `make test`, which provides it, or `make test ROCKETMQ=off`, which does without", name)
	return address
}

// connectRocket gives a shop a RocketMQ.
func connectRocket(t testing.TB, s *shop, nameServer string, mode rocket.Mode) *system {
	cfg := rocket.Config{
		NameServers: []string{nameServer}, Prefix: "test", Ledger: s.ledger.ID(), Mode: mode,
		DrainTimeout: 8 * time.Second,
	}.WithDefaults()
	return &system{shop: s, site: site{DatabaseURL: s.url, Rocket: &cfg}, tally: newTally(), log: logger(t)}
}

// discover asks the brokers what they are until one answers, as the services
// do.
func discover(ctx context.Context, cfg rocket.Config) (rocket.Facts, error) {
	for {
		facts, err := rocket.Discover(ctx, cfg)
		if err == nil || ctx.Err() != nil || errors.As(err, new(*bide.Fault)) {
			return facts, err
		}
		await(ctx, 100*time.Millisecond)
	}
}

// rocketInjector returns a function that puts bodies on the system's topic.
func (s *system) rocketInjector(t testing.TB) func(bodies [][]byte) {
	t.Helper()
	p, err := rocketmq.NewProducer(
		client.WithNsResolver(primitive.NewPassthroughResolver(s.site.Rocket.NameServers)),
		client.WithInstanceName("inject-"+brokertest.NewLedger().String()),
	)
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Shutdown() })
	return func(bodies [][]byte) {
		for _, b := range bodies {
			if len(b) == 0 {
				b = []byte{0} // 5.5 stumbles over a message without a body
			}
			result, err := p.SendSync(t.Context(), primitive.NewMessage(s.site.Rocket.Topic(), b))
			require.NoError(t, err)
			require.Equal(t, primitive.SendOK, result.Status)
		}
	}
}
