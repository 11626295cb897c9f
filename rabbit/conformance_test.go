package rabbit_test

import (
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rabbit"
)

func TestConformanceQuorum(t *testing.T) { conform(t, rabbit.Quorum) }

func TestConformanceClassic(t *testing.T) { conform(t, rabbit.Classic) }

// conform runs the suite; each ledger's drivers go through a proxy of their own.
func conform(t *testing.T, queueType rabbit.QueueType) {
	broker := &ledgers{queueType: queueType, of: map[bide.LedgerID]*ledger{}}
	brokertest.Run(t, brokertest.System{
		Publisher: func(t *testing.T, id bide.LedgerID) brokertest.Publisher {
			return newPublisher(t, broker.get(t, id).cfg)
		},
		Subscriber: func(t *testing.T, id bide.LedgerID) bide.Subscriber {
			return newSubscriber(t, broker.get(t, id).cfg)
		},
		Inject: func(t *testing.T, id bide.LedgerID, body []byte) {
			queue := broker.get(t, id).cfg.DeliveryQueue()
			err := admin(t, sharedURL(t)).Publish("", queue, true, false, amqp.Publishing{Body: body})
			require.NoError(t, err)
		},
		Cut: func(t *testing.T, id bide.LedgerID) { broker.get(t, id).proxy.Cut() },
		Features: brokertest.Features{
			Late: 2 * time.Second, LongestDelay: 2 * time.Second, Redelivered: true, EmptyBody: true,
		},
	})
}

// ledgers keeps one configuration and one proxy per ledger.
type ledgers struct {
	queueType rabbit.QueueType

	mu sync.Mutex
	of map[bide.LedgerID]*ledger
}

type ledger struct {
	cfg   rabbit.Config
	proxy *brokertest.Proxy
}

func (l *ledgers) get(t *testing.T, id bide.LedgerID) *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[id] == nil {
		address := sharedURL(t)
		proxy := brokertest.NewProxy(t, hostOf(t, address))
		cfg := config(through(t, address, proxy))
		cfg.Ledger, cfg.QueueType = id, l.queueType
		t.Cleanup(func() { deleteQueues(t, cfg) })
		l.of[id] = &ledger{cfg, proxy}
	}
	return l.of[id]
}
