package brokertest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

func testSession(t *testing.T, system System) {
	ledger := NewLedger()
	p, s := system.Publisher(t, ledger), system.Subscriber(t, ledger)
	require.Equal(t, bide.SessionDown, p.Session().State)
	require.Equal(t, bide.SessionDown, s.Session().State)
	require.NoError(t, p.Session().Err, "nothing was attempted yet")
	require.NoError(t, s.Session().Err, "nothing was attempted yet")

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	in := subscribe(t, s, true)
	awaitUp(t, p)
	require.NoError(t, p.Session().Err)

	cancel()
	require.NoError(t, <-ended)
	in.stop(t)
	require.Equal(t, bide.SessionDown, p.Session().State)
	require.Equal(t, bide.SessionDown, s.Session().State)
}

func testCut(t *testing.T, system System) {
	ledger := NewLedger()
	p := system.Publisher(t, ledger)
	Start(t, p)
	s := system.Subscriber(t, ledger)
	in := subscribe(t, s, false)
	publish(t, p, hop{}.send(ledger, 1))
	stale := in.next(t)

	system.Cut(t, ledger)
	again := in.next(t)
	require.Equal(t, stale.Body, again.Body)
	stale.Ack() // its session is gone: no effect, on no message
	again.Ack()
	awaitUp(t, p)
	publish(t, p, hop{}.send(ledger, 2))
	last := in.next(t)
	require.Equal(t, int64(2), last.message(t).TaskID)
	last.Ack()
	in.quiet(t)
}

func testCutsUnderLoad(t *testing.T, system System) {
	ledger := NewLedger()
	p, in := open(t, system, ledger)
	ways := hops(p.Capabilities(), system.Features)
	const batches, cuts = 60, 2
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	var confirmed []int64
	for n := range batches {
		sends := make([]bide.Send, 3*len(ways))
		for i := range sends {
			sends[i] = ways[i%len(ways)].send(ledger, int64(n*len(sends)+i+1))
		}
		for i, o := range p.Publish(t.Context(), sends) {
			if o.Status == bide.Confirmed {
				confirmed = append(confirmed, sends[i].Message.TaskID)
			}
		}
		if n%(batches/(cuts+1)) == batches/(cuts+1)-1 {
			system.Cut(t, ledger)
		}
		<-pace.C
	}
	awaitUp(t, p)
	require.NotEmpty(t, confirmed)
	in.ids(t, confirmed...)
}
