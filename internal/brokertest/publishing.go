package brokertest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// soon is far below every time-out of a driver, and far above what a busy
// machine needs to return without waiting for one.
const soon = 500 * time.Millisecond

func testCapabilities(t *testing.T, system System) {
	caps := system.Publisher(t, NewLedger()).Capabilities()
	require.Positive(t, caps.Window)
	require.GreaterOrEqual(t, caps.Lead, time.Duration(0))
	require.NotEqual(t, caps.Timers, len(caps.Delays) > 0, "want timers or fixed delays, one of the two")
	require.True(t, slices.IsSorted(caps.Delays))
	for _, d := range caps.Delays {
		require.Positive(t, d)
	}
	if caps.Timers {
		require.Positive(t, caps.Horizon)
	}
}

func testDelays(t *testing.T, system System) {
	ledger := NewLedger()
	p, in := open(t, system, ledger)
	ways := hops(p.Capabilities(), system.Features)
	want := map[int64]bide.Message{}
	var sends []bide.Send
	for i := range 10 * len(ways) {
		s := ways[i%len(ways)].send(ledger, int64(i+1))
		want[s.Message.TaskID] = s.Message
		sends = append(sends, s)
	}
	publish(t, p, sends...)
	for range sends {
		a := in.next(t)
		got := a.message(t)
		require.Equal(t, string(want[got.TaskID].Body()), string(a.Body))
		late := a.at.Sub(got.DeliverAt)
		require.GreaterOrEqual(t, late, -system.Early, "task %d came early", got.TaskID)
		require.LessOrEqual(t, late, system.Late, "task %d came late", got.TaskID)
	}
}

func testHeadOfLine(t *testing.T, system System) {
	ledger := NewLedger()
	p, in := open(t, system, ledger)
	ways := hops(p.Capabilities(), system.Features)
	long := ways[len(ways)-1]
	publish(t, p, long.send(ledger, 1))
	for i, short := range slices.Backward(ways[:len(ways)-1]) {
		publish(t, p, short.send(ledger, int64(i+10)))
	}
	for range len(ways) - 1 {
		require.GreaterOrEqual(t, in.next(t).message(t).TaskID, int64(10), "the longest delay came first")
	}
	require.Equal(t, int64(1), in.next(t).message(t).TaskID)
}

func testOutcomes(t *testing.T, system System) {
	ledger := NewLedger()
	p, in := open(t, system, ledger)
	require.Empty(t, p.Publish(t.Context(), nil))
	ways := hops(p.Capabilities(), system.Features)
	sends := make([]bide.Send, 101)
	for i := range sends {
		sends[i] = ways[i%len(ways)].send(ledger, int64(i+1))
	}
	publish(t, p, sends...)
	in.ids(t, sequence(len(sends))...)
}

func testBadLevel(t *testing.T, system System) {
	ledger := NewLedger()
	p, in := open(t, system, ledger)
	sends := []bide.Send{
		hop{level: bide.LevelNone}.send(ledger, 1),
		hop{level: len(p.Capabilities().Delays) + 1}.send(ledger, 2),
		hop{level: bide.LevelNone}.send(ledger, 3),
		hop{level: -7}.send(ledger, 4),
	}
	got := p.Publish(t.Context(), sends)
	require.Len(t, got, len(sends))
	for i, want := range []bide.Status{bide.Confirmed, bide.Refused, bide.Confirmed, bide.Refused} {
		require.Equal(t, want, got[i].Status, "send %d", i)
		require.Equal(t, want != bide.Confirmed, got[i].Err != nil, "send %d", i)
	}
	in.ids(t, 1, 3)
}

func testWindow(t *testing.T, system System) {
	ledger := NewLedger()
	p, in := open(t, system, ledger)
	sends := make([]bide.Send, 4*p.Capabilities().Window)
	for i := range sends {
		sends[i] = hop{level: bide.LevelNone}.send(ledger, int64(i+1))
	}
	publish(t, p, sends...)
	in.ids(t, sequence(len(sends))...)
}

func testConcurrentPublish(t *testing.T, system System) {
	const publishers, each = 8, 50
	ledger := NewLedger()
	p, in := open(t, system, ledger)
	var wg sync.WaitGroup
	outcomes := make([][]bide.Outcome, publishers)
	for n := range publishers {
		wg.Go(func() {
			sends := make([]bide.Send, each)
			for i := range sends {
				sends[i] = hop{level: bide.LevelNone}.send(ledger, int64(n*each+i+1))
			}
			outcomes[n] = p.Publish(t.Context(), sends)
		})
	}
	wg.Wait()
	for _, of := range outcomes {
		require.Len(t, of, each)
		for _, o := range of {
			require.NoError(t, o.Err)
		}
	}
	in.ids(t, sequence(publishers*each)...)
}

func testCancelledPublish(t *testing.T, system System) {
	ledger := NewLedger()
	p, _ := open(t, system, ledger)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	got := p.Publish(ctx, []bide.Send{hop{level: bide.LevelNone}.send(ledger, 1)})
	require.Less(t, time.Since(began), soon)
	require.Len(t, got, 1)
	if got[0].Status != bide.Confirmed {
		require.ErrorIs(t, got[0].Err, context.Canceled)
	}
}

func testNoSession(t *testing.T, system System) {
	ledger := NewLedger()
	p := system.Publisher(t, ledger)
	began := time.Now()
	got := p.Publish(t.Context(), []bide.Send{hop{level: bide.LevelNone}.send(ledger, 1), {Level: 999}})
	require.Less(t, time.Since(began), soon)
	require.Len(t, got, 2)
	require.Equal(t, bide.Refused, got[0].Status)
	require.ErrorIs(t, got[0].Err, bide.ErrSessionDown)
	require.Equal(t, bide.Refused, got[1].Status)
}

// open starts a publisher and a subscriber that acknowledges.
func open(t *testing.T, system System, ledger bide.LedgerID) (Publisher, *intake) {
	t.Helper()
	p := system.Publisher(t, ledger)
	Start(t, p)
	return p, subscribe(t, system.Subscriber(t, ledger), true)
}
