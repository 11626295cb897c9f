package brokertest

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

func testAck(t *testing.T, system System) {
	ledger := NewLedger()
	p, in := open(t, system, ledger)
	publish(t, p, hop{}.send(ledger, 1), hop{}.send(ledger, 2))
	in.ids(t, 1, 2)
	in.stop(t)
	subscribe(t, system.Subscriber(t, ledger), true).quiet(t)
}

func testRedelivery(t *testing.T, system System) {
	ledger := NewLedger()
	p := system.Publisher(t, ledger)
	Start(t, p)
	in := subscribe(t, system.Subscriber(t, ledger), false)
	publish(t, p, hop{}.send(ledger, 1), hop{}.send(ledger, 2))
	for range 2 {
		a := in.next(t)
		require.False(t, a.Redelivered)
		if a.message(t).TaskID == 1 {
			a.Ack()
		}
	}
	in.stop(t)
	again := subscribe(t, system.Subscriber(t, ledger), true)
	a := again.next(t)
	require.Equal(t, int64(2), a.message(t).TaskID)
	require.Equal(t, system.Features.Redelivered, a.Redelivered)
	again.quiet(t)
}

func testOddAcks(t *testing.T, system System) {
	ledger := NewLedger()
	p := system.Publisher(t, ledger)
	Start(t, p)
	in := subscribe(t, system.Subscriber(t, ledger), false)
	publish(t, p, hop{}.send(ledger, 1), hop{}.send(ledger, 2))
	first, second := in.next(t), in.next(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(first.Ack)
	}
	wg.Wait()
	in.stop(t)
	second.Ack() // after the end: nothing happens

	again := subscribe(t, system.Subscriber(t, ledger), true)
	require.Equal(t, second.Body, again.next(t).Body)
	second.Ack()
	publish(t, p, hop{}.send(ledger, 3))
	again.ids(t, 3)
}

func testCopies(t *testing.T, system System) {
	ledger := NewLedger()
	p, in := open(t, system, ledger)
	s := hop{}.send(ledger, 1)
	publish(t, p, s, s, s)
	for range 3 {
		require.Equal(t, s.Message.Body(), in.next(t).Body)
	}
}

func testLedgers(t *testing.T, system System) {
	one, two := NewLedger(), NewLedger()
	p1, in1 := open(t, system, one)
	p2, in2 := open(t, system, two)
	for id := range int64(20) {
		publish(t, p1, hop{}.send(one, id+1))
		publish(t, p2, hop{}.send(two, id+1))
	}
	for range 20 {
		require.Equal(t, one, in1.next(t).message(t).Ledger)
		require.Equal(t, two, in2.next(t).message(t).Ledger)
	}
	in1.quiet(t)
	in2.quiet(t)
}

func testBodies(t *testing.T, system System) {
	ledger := NewLedger()
	_, in := open(t, system, ledger) // makes what the injection needs
	bodies := [][]byte{
		[]byte("not a message"),
		{0, 1, 2, 0xff, 0xfe, '\n', 0},
		bytes.Repeat([]byte{0xab, 0}, 1<<19),
	}
	if system.EmptyBody {
		bodies = append(bodies, []byte{})
	}
	for _, body := range bodies {
		system.Inject(t, ledger, body)
		a := in.next(t)
		require.True(t, bytes.Equal(body, a.Body), "%d bytes, want %d", len(a.Body), len(body))
		_, err := bide.ParseMessage(a.Body)
		require.ErrorIs(t, err, bide.ErrMessage)
	}
	in.stop(t)
	subscribe(t, system.Subscriber(t, ledger), true).quiet(t)
}

func testDrain(t *testing.T, system System) {
	ledger := NewLedger()
	p := system.Publisher(t, ledger)
	Start(t, p)
	in := subscribe(t, system.Subscriber(t, ledger), false)
	const n = 100
	sends := make([]bide.Send, n)
	for i := range sends {
		sends[i] = hop{}.send(ledger, int64(i+1))
	}
	publish(t, p, sends...)
	held := make([]arrival, n)
	for i := range held {
		held[i] = in.next(t)
	}
	in.cancel()
	select {
	case err := <-in.ended:
		require.FailNow(t, "ended with deliveries unacknowledged", "%v", err)
	case <-time.After(100 * time.Millisecond):
	}
	for _, a := range held {
		a.Ack()
	}
	require.NoError(t, in.wait())
	subscribe(t, system.Subscriber(t, ledger), true).quiet(t)
}

func testDrainBounded(t *testing.T, system System) {
	ledger := NewLedger()
	p := system.Publisher(t, ledger)
	Start(t, p)
	in := subscribe(t, system.Subscriber(t, ledger), false)
	publish(t, p, hop{}.send(ledger, 1))
	in.next(t)
	began := time.Now()
	in.stop(t)
	require.Less(t, time.Since(began), 10*time.Second)
}
