package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
)

// Whatever the broker does to its messages, and the database to executions,
// every task is finished once, at its time or later.
func TestWorkerInAllWeathers(t *testing.T) {
	check(t, func(rt *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		b := newBook()
		b.mostAttempts, b.mostReclaims = 1000, 1000
		b.takes = time.Duration(random.IntN(30)) * time.Millisecond
		b.fault = func([]int64) error { // called under the book's lock
			return []error{nil, nil, nil, nil, errPlain, ErrContended, ErrUnavailable, ErrLost}[random.IntN(8)]
		}
		memory := brokertest.NewMemory(bide.Capabilities{})
		subscriber := &brokertest.FaultySubscriber{Subscriber: memory.Subscriber(thisLedger), Fault: badWeather(b, random)}
		events := newTally()
		w := New(Config{Ledger: thisLedger}, b, b, subscriber, events, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()

		const n = 60
		for id := range int64(n) {
			var in, cut int
			b.do(func() { in, cut = random.IntN(2000), random.IntN(20) })
			task := due(id+1, time.Duration(in)*time.Millisecond)
			b.add(task)
			memory.Inject(thisLedger, message(task).Body())
			if cut == 0 {
				memory.Cut(thisLedger)
			}
			pass(20 * time.Millisecond)
		}
		b.faulty(sound)
		pass(20 * time.Second)
		cancel()
		require.NoError(rt, <-ended)
		require.Len(rt, events.late, n)
		require.Empty(rt, b.left())
		for _, late := range events.late {
			require.GreaterOrEqual(rt, late, time.Duration(0))
		}
	})
}

// badWeather draws a delivery's fate.
func badWeather(b *book, random *rand.Rand) func(bide.Delivery) brokertest.DeliveryFault {
	return func(bide.Delivery) (f brokertest.DeliveryFault) {
		b.do(func() {
			switch random.IntN(6) {
			case 0:
				f.Copies = random.IntN(3)
			case 1:
				f.Delay = time.Duration(random.IntN(3000)) * time.Millisecond
			case 2:
				f.Garble = true
			case 3:
				f.LoseAck = true
			}
		})
		return f
	}
}
