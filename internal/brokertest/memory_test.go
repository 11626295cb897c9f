package brokertest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMemoryConformance runs the suite over each kind of broker.
func TestMemoryConformance(t *testing.T) {
	for name, caps := range map[string]bide.Capabilities{
		"levels": {Delays: []time.Duration{200 * time.Millisecond, 600 * time.Millisecond}, Window: 64},
		"timers": {Timers: true, Horizon: time.Hour, Window: 64},
	} {
		t.Run(name, func(t *testing.T) {
			broker := brokertest.NewMemory(caps)
			brokertest.Run(t, brokertest.System{
				Publisher: func(_ *testing.T, ledger bide.LedgerID) brokertest.Publisher { return broker.Publisher(ledger) },
				Subscriber: func(_ *testing.T, ledger bide.LedgerID) bide.Subscriber {
					return broker.Subscriber(ledger)
				},
				Inject: func(_ *testing.T, ledger bide.LedgerID, body []byte) { broker.Inject(ledger, body) },
				Cut:    func(_ *testing.T, ledger bide.LedgerID) { broker.Cut(ledger) },
				Features: brokertest.Features{
					Late: 300 * time.Millisecond, LongestDelay: time.Second, Redelivered: true, EmptyBody: true,
				},
			})
		})
	}
}
