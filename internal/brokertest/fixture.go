package brokertest

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// NewLedger returns a ledger id that no other test uses.
func NewLedger() bide.LedgerID {
	var id bide.LedgerID
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// Start runs the publisher until t ends and waits until its session is up.
func Start(t testing.TB, p Publisher) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	awaitUp(t, p)
}

func awaitUp(t testing.TB, driver interface{ Session() bide.Session }) {
	t.Helper()
	require.Eventually(t, func() bool { return driver.Session().State == bide.SessionUp },
		patience, time.Millisecond, "no session")
}

// arrival is a delivery and when it came.
type arrival struct {
	bide.Delivery
	at time.Time
}

func (a arrival) message(t *testing.T) bide.Message {
	t.Helper()
	m, err := bide.ParseMessage(a.Body)
	require.NoError(t, err)
	return m
}

// intake is a running subscriber whose deliveries wait to be looked at.
type intake struct {
	arrivals chan arrival
	cancel   context.CancelFunc
	ended    chan error
	once     sync.Once
	err      error
}

// subscribe runs the subscriber until t ends. With ack, each delivery is
// acknowledged as it comes.
func subscribe(t *testing.T, s bide.Subscriber, ack bool) *intake {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	in := &intake{arrivals: make(chan arrival, 100_000), cancel: cancel, ended: make(chan error, 1)}
	go func() {
		in.ended <- s.Subscribe(ctx, func(d bide.Delivery) {
			in.arrivals <- arrival{d, time.Now()}
			if ack {
				d.Ack()
			}
		})
	}()
	t.Cleanup(func() { in.stop(t) })
	awaitUp(t, s)
	return in
}

// stop ends the subscription and waits for it.
func (in *intake) stop(t *testing.T) {
	t.Helper()
	in.cancel()
	require.NoError(t, in.wait())
}

func (in *intake) wait() error {
	in.once.Do(func() { in.err = <-in.ended })
	return in.err
}

// next returns the next arrival.
func (in *intake) next(t *testing.T) arrival {
	t.Helper()
	select {
	case a := <-in.arrivals:
		return a
	case <-time.After(patience):
		require.FailNow(t, "no delivery")
		return arrival{}
	}
}

// silence is how long nothing must arrive to say that nothing will.
const silence = 300 * time.Millisecond

// quiet requires that nothing arrives.
func (in *intake) quiet(t *testing.T) {
	t.Helper()
	select {
	case a := <-in.arrivals:
		require.FailNow(t, "unexpected delivery", "%d bytes: %.120q", len(a.Body), a.Body)
	case <-time.After(silence):
	}
}

// ids takes arrivals until each of the wanted task ids has come.
func (in *intake) ids(t *testing.T, want ...int64) {
	t.Helper()
	missing := map[int64]bool{}
	for _, id := range want {
		missing[id] = true
	}
	for len(missing) > 0 {
		delete(missing, in.next(t).message(t).TaskID)
	}
}

// hop is one way through the broker.
type hop struct {
	level int
	delay time.Duration
}

// hops are the ways through the broker that do not take too long.
func hops(caps bide.Capabilities, f Features) []hop {
	all := []hop{{level: bide.LevelNone}}
	if caps.Timers {
		return append(all, hop{bide.LevelTimer, 2 * time.Second}, hop{bide.LevelTimer, 3 * time.Second})
	}
	for i, d := range caps.Delays {
		if d <= f.LongestDelay {
			all = append(all, hop{i + 1, d})
		}
	}
	return all
}

// send makes a send of task id that is due to be delivered after the hop.
func (h hop) send(ledger bide.LedgerID, id int64) bide.Send {
	at := time.Now().Add(h.delay).Truncate(time.Microsecond)
	if h.level == bide.LevelTimer {
		at = at.Truncate(time.Second)
	}
	return bide.Send{Level: h.level, Message: bide.Message{Ledger: ledger, TaskID: id, RunAt: at, DeliverAt: at}}
}

// publish requires that every send is confirmed.
func publish(t *testing.T, p bide.Publisher, sends ...bide.Send) {
	t.Helper()
	for i, o := range p.Publish(t.Context(), sends) {
		require.NoError(t, o.Err, "send %d", i)
		require.Equal(t, bide.Confirmed, o.Status, "send %d", i)
	}
}

func sequence(n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	return ids
}
