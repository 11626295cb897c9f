package integration

import (
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
)

// Every kind of fault that a publish or a delivery can meet, one in five.
func TestBrokerThatLosesRepeatsDelaysAndGarblesUnderLoad(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	chance := random(t)
	var published, delivered atomic.Int32
	publishing := brokertest.Sometimes(chance.Uint64(), 0.2, brokertest.Refuse, brokertest.LoseRequest,
		brokertest.LoseAnswer, brokertest.LoseMessage, brokertest.Duplicate)
	delivering := deliveries(chance.Uint64())
	s.startRelay(t, relaySpec{publisher: func(p bide.Publisher) bide.Publisher {
		return &brokertest.FaultyPublisher{Publisher: p, Fault: func(send bide.Send) brokertest.Fault {
			fault := publishing(send)
			if fault != brokertest.NoFault {
				published.Add(1)
			}
			return fault
		}}
	}})
	for range 2 {
		s.startWorker(t, workerSpec{subscriber: func(inner bide.Subscriber) bide.Subscriber {
			return &brokertest.FaultySubscriber{Subscriber: inner, Fault: func(bide.Delivery) brokertest.DeliveryFault {
				fault := delivering()
				if fault != (brokertest.DeliveryFault{}) {
					delivered.Add(1)
				}
				return fault
			}}
		}})
	}
	s.underLoad(t, 4, 5*time.Second, func() { await(t.Context(), 5*time.Second) })
	s.awaitDone(t, 30*time.Second)
	v := s.requireKept(t, promised)
	require.Greater(t, int(published.Load()), v.Closed/10)
	require.Greater(t, int(delivered.Load()), v.Closed/10)
}

// deliveries draws what happens to deliveries. No acknowledgement is withheld:
// the drain at the end would wait for it.
func deliveries(seed uint64) func() brokertest.DeliveryFault {
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(seed, 0))
	kinds := []brokertest.DeliveryFault{{Copies: 5}, {Delay: 300 * time.Millisecond}, {Garble: true}}
	return func() brokertest.DeliveryFault {
		mu.Lock()
		defer mu.Unlock()
		if chance.Float64() >= 0.2 {
			return brokertest.DeliveryFault{}
		}
		return kinds[chance.IntN(len(kinds))]
	}
}

// A cut connection leaves commits and publishes of which nobody knows whether
// they happened.
func TestConnectionsCutUnderLoad(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	database, broker := s.throughProxies(t)
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	s.startWorker(t, workerSpec{})
	s.underLoad(t, 2, 4*time.Second, func() {
		for i := range 6 {
			await(t.Context(), time.Second)
			database.Cut()
			if i%2 == 0 {
				broker.Cut()
			}
		}
		await(t.Context(), time.Second)
	})
	s.awaitDone(t, 60*time.Second)
	s.requireKept(t, time.Minute)
}

// throughProxies puts a proxy before each server, for the services only.
func (s *system) throughProxies(t testing.TB) (database, broker *brokertest.Proxy) {
	through := func(address *string) *brokertest.Proxy {
		u, err := url.Parse(*address)
		require.NoError(t, err)
		proxy := brokertest.NewProxy(t, u.Host)
		u.Host = proxy.Addr()
		*address = u.String()
		return proxy
	}
	return through(&s.site.DatabaseURL), through(&s.site.Rabbit.URL)
}
