package rocket_test

import (
	"sync"
	"testing"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rocket"
)

func TestConformance4Levels(t *testing.T) { conform(t, "4", rocket.Levels) }

func TestConformance5Levels(t *testing.T) { conform(t, "5", rocket.Levels) }

func TestConformance5Timers(t *testing.T) { conform(t, "5", rocket.Timers) }

// conform runs the suite; each ledger's drivers go through proxies of their own.
func conform(t *testing.T, line string, mode rocket.Mode) {
	broker := &ledgers{line: line, mode: mode, of: map[bide.LedgerID]*ledger{}}
	brokertest.Run(t, brokertest.System{
		Publisher: func(t *testing.T, id bide.LedgerID) brokertest.Publisher {
			return newPublisher(t, broker.get(t, id).cfg)
		},
		Subscriber: func(t *testing.T, id bide.LedgerID) bide.Subscriber {
			return newSubscriber(t, broker.get(t, id).cfg)
		},
		Inject: func(t *testing.T, id bide.LedgerID, body []byte) { inject(t, broker.get(t, id).cfg, body) },
		Cut:    func(t *testing.T, id bide.LedgerID) { broker.get(t, id).proxy.Cut() },
		Leaks:  brokertest.RocketMQLeaks(),
		Features: brokertest.Features{
			Late: 3 * time.Second, LongestDelay: 5 * time.Second, Redelivered: true,
		},
	})
}

// ledgers keeps one configuration and one proxy per ledger.
type ledgers struct {
	line string
	mode rocket.Mode

	mu sync.Mutex
	of map[bide.LedgerID]*ledger
}

type ledger struct {
	cfg   rocket.Config
	proxy *brokertest.Proxy
}

func (l *ledgers) get(t *testing.T, id bide.LedgerID) *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[id] == nil {
		proxied, proxy := through(t, shared(t, l.line))
		cfg := proxied.config(l.mode)
		cfg.Ledger = id
		l.of[id] = &ledger{cfg, proxy}
	}
	return l.of[id]
}
