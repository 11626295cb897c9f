package rocket_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/rocket"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

// arrival is a delivery and when it came.
type arrival struct {
	bide.Delivery
	at time.Time
}

func (a arrival) message(t testing.TB) bide.Message {
	t.Helper()
	m, err := bide.ParseMessage(a.Body)
	require.NoError(t, err)
	return m
}

// intake is a running subscriber.
type intake struct {
	*rocket.Subscriber
	arrivals chan arrival
	cancel   context.CancelFunc
	ended    chan error
	once     sync.Once
	err      error
}

// subscribe runs a subscriber until t ends. With ack, each delivery is
// acknowledged as it comes.
func subscribe(t testing.TB, cfg rocket.Config, ack bool) *intake {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	in := &intake{
		Subscriber: newSubscriber(t, cfg), arrivals: make(chan arrival, 1_000_000), cancel: cancel, ended: make(chan error, 1),
	}
	go func() {
		in.ended <- in.Subscribe(ctx, func(d bide.Delivery) {
			in.arrivals <- arrival{d, time.Now()}
			if ack {
				d.Ack()
			}
		})
	}()
	t.Cleanup(func() { in.stop(t) })
	await(t, in, bide.SessionUp)
	return in
}

func (in *intake) stop(t testing.TB) {
	t.Helper()
	in.cancel()
	in.once.Do(func() { in.err = <-in.ended })
	require.NoError(t, in.err)
}

func (in *intake) next(t testing.TB) arrival {
	t.Helper()
	select {
	case a := <-in.arrivals:
		return a
	case <-time.After(patience):
		require.FailNow(t, "no delivery")
		return arrival{}
	}
}

func (in *intake) quiet(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case a := <-in.arrivals:
		require.FailNow(t, "unexpected delivery", "%.120q", a.Body)
	case <-time.After(d):
	}
}

// all takes arrivals until each of the ids has come.
func (in *intake) all(t testing.TB, ids []int64) {
	t.Helper()
	missing := map[int64]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	for len(missing) > 0 {
		select {
		case a := <-in.arrivals:
			delete(missing, a.message(t).TaskID)
		case <-time.After(patience):
			require.FailNow(t, "messages are missing", "%d of %d", len(missing), len(ids))
		}
	}
}

// run runs a publisher until t ends.
func run(t testing.TB, cfg rocket.Config) *rocket.Publisher {
	t.Helper()
	p := newPublisher(t, cfg)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	await(t, p, bide.SessionUp)
	return p
}

// await waits for a state and tells how long that took.
func await(t testing.TB, driver interface{ Session() bide.Session }, want bide.SessionState) time.Duration {
	t.Helper()
	began := time.Now()
	require.Eventually(t, func() bool { return driver.Session().State == want },
		patience, time.Millisecond, "the session is not %s: %v", want, driver.Session().Err)
	return time.Since(began)
}

// now is a send at once.
func now(cfg rocket.Config, id int64) bide.Send {
	at := time.Now().Truncate(time.Microsecond)
	return bide.Send{Message: bide.Message{Ledger: cfg.Ledger, TaskID: id, RunAt: at, DeliverAt: at}}
}

// in is a send at a level, or by a timer, that is to arrive after d.
func in(cfg rocket.Config, id int64, level int, d time.Duration) bide.Send {
	send := now(cfg, id)
	send.Level = level
	send.Message.DeliverAt = send.Message.DeliverAt.Add(d)
	if level == bide.LevelTimer {
		send.Message.DeliverAt = send.Message.DeliverAt.Truncate(time.Second).Add(time.Second)
	}
	return send
}

// confirm publishes and requires that everything is confirmed.
func confirm(t testing.TB, p *rocket.Publisher, sends ...bide.Send) {
	t.Helper()
	for i, o := range p.Publish(t.Context(), sends) {
		require.NoError(t, o.Err, "send %d", i)
		require.Equal(t, bide.Confirmed, o.Status, "send %d", i)
	}
}

// load publishes batches until it is stopped and remembers what was confirmed.
type load struct {
	stopped   chan struct{}
	done      chan struct{}
	confirmed []int64
}

func startLoad(t testing.TB, p *rocket.Publisher, cfg rocket.Config) *load {
	l := &load{stopped: make(chan struct{}), done: make(chan struct{})}
	level := 1
	if p.Capabilities().Timers {
		level = bide.LevelTimer
	}
	go func() {
		defer close(l.done)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for id := int64(1); ; {
			select {
			case <-l.stopped:
				return
			case <-ticker.C:
			}
			var sends []bide.Send
			for range 5 {
				sends = append(sends, now(cfg, id), in(cfg, id+1, level, time.Second))
				id += 2
			}
			for i, o := range p.Publish(context.WithoutCancel(t.Context()), sends) {
				if o.Status == bide.Confirmed {
					l.confirmed = append(l.confirmed, sends[i].Message.TaskID)
				}
			}
		}
	}()
	return l
}

// stop returns the ids of what was confirmed.
func (l *load) stop() []int64 {
	close(l.stopped)
	<-l.done
	return l.confirmed
}

// pause lets time pass in which something must go on or keep from happening.
func pause(d time.Duration) { <-time.After(d) }
