package rabbit_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rabbit"
)

func awaitState(t testing.TB, session func() bide.Session, want bide.SessionState, within time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool { return session().State == want }, within, time.Millisecond,
		"want %s, have %v", want, session())
}

// TestBlockedConnection: under a memory alarm the first batch becomes unknown,
// then nothing is taken and nothing is redialled, consumers go on, and the end
// of the alarm brings the session back by itself.
func TestBlockedConnection(t *testing.T) {
	broker := ownBroker(t)
	cfg := broker.config()
	p, s := newPublisher(t, cfg), newSubscriber(t, cfg)
	brokertest.Start(t, p)
	got := consume(t, s, true)
	requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 20, 3)))

	broker.do(t, "ctl", "set_vm_memory_high_watermark", "0.00000001")
	t.Cleanup(func() { broker.do(t, "ctl", "set_vm_memory_high_watermark", "0.4") })
	outcomes := p.Publish(t.Context(), sends(p, cfg, 10, 1))
	require.Equal(t, map[bide.Status]int{bide.Unknown: 10}, count(outcomes))
	require.ErrorIs(t, outcomes[0].Err, bide.ErrSessionDown, "the session's fault and no level's")
	require.NotErrorIs(t, outcomes[0].Err, bide.ErrConfirmTimeout)
	awaitState(t, p.Session, bide.SessionBlocked, patience)
	require.ErrorContains(t, p.Session().Err, "blocked")

	began := time.Now()
	require.Equal(t, map[bide.Status]int{bide.Refused: 10}, count(p.Publish(t.Context(), sends(p, cfg, 10, 1))))
	require.Less(t, time.Since(began), time.Second, "refused at once")
	receiveAll(t, got, 20)
	require.Never(t, func() bool {
		return p.Session().State != bide.SessionBlocked || s.Session().State != bide.SessionUp
	}, 8*time.Second, 50*time.Millisecond, "longer than heartbeats and time-outs last")

	broker.do(t, "ctl", "set_vm_memory_high_watermark", "0.4")
	awaitState(t, p.Session, bide.SessionUp, patience)
	requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 10, 1)))
	receiveAll(t, got, 10)
}

// TestMuteBroker: a broker that stops without closing anything is noticed
// within about two seconds by both sides, used or idle, and nothing hangs.
func TestMuteBroker(t *testing.T) {
	broker := ownBroker(t)
	cfg := broker.config()
	p, s := newPublisher(t, cfg), newSubscriber(t, cfg)
	brokertest.Start(t, p)
	got := consume(t, s, true)
	requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 20, 3)))

	broker.do(t, "pause")
	resume := sync.OnceFunc(func() { broker.do(t, "resume") })
	t.Cleanup(resume)
	paused := time.Now()
	awaitState(t, p.Session, bide.SessionDown, 4*time.Second)
	awaitState(t, s.Session, bide.SessionDown, 4*time.Second)
	t.Logf("noticed after %s", time.Since(paused))
	require.Less(t, time.Since(paused), 2500*time.Millisecond)

	outcomes := p.Publish(t.Context(), append(sends(p, cfg, 300, 1), sends(p, cfg, 300, 2)...))
	require.Less(t, time.Since(paused), 20*time.Second)
	require.Zero(t, count(outcomes)[bide.Confirmed])
	for _, o := range outcomes {
		require.NotErrorIs(t, o.Err, bide.ErrConfirmTimeout, "no level is to blame")
	}
	resume()
	awaitState(t, p.Session, bide.SessionUp, patience)
	awaitState(t, s.Session, bide.SessionUp, patience)
	requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 10, 1)))
	receiveAll(t, got, 20)
}

// TestKilledBroker: what was confirmed survives a SIGKILL of the broker.
func TestKilledBroker(t *testing.T) {
	for _, of := range []rabbit.QueueType{rabbit.Quorum, rabbit.Classic} {
		t.Run(string(of), func(t *testing.T) {
			broker := ownBroker(t)
			cfg := broker.config()
			cfg.QueueType = of
			p, s := newPublisher(t, cfg), newSubscriber(t, cfg)
			brokertest.Start(t, p)
			got := consume(t, s, true)

			// A node writes down which quorum queues it has twice a second. One made
			// later than that before a crash comes back empty.
			<-time.After(time.Second)
			confirmed, unknown := publishUntilDown(t, p, cfg, func() { broker.do(t, "kill") })
			awaitState(t, p.Session, bide.SessionDown, 3*time.Second)
			awaitState(t, s.Session, bide.SessionDown, 3*time.Second)
			began := time.Now()
			down := p.Publish(t.Context(), sends(p, cfg, 10, 1))
			require.Less(t, time.Since(began), 500*time.Millisecond)
			require.Equal(t, bide.Refused, down[0].Status)
			require.ErrorIs(t, down[0].Err, bide.ErrSessionDown)

			broker.do(t, "restart")
			awaitState(t, p.Session, bide.SessionUp, patience)
			awaitState(t, s.Session, bide.SessionUp, patience)
			require.NotEmpty(t, confirmed)
			lost := missingAfter(t, got, confirmed)
			t.Logf("confirmed %d, unknown %d, lost %d", len(confirmed), unknown, lost)
			if of == rabbit.Quorum {
				require.Zero(t, lost)
			}
		})
	}
}

// publishUntilDown publishes to a tier, calls kill half-way and goes on until
// the session is down.
func publishUntilDown(t *testing.T, p *rabbit.Publisher, cfg rabbit.Config, kill func()) (confirmed map[int64]bool, unknown int) {
	t.Helper()
	confirmed = map[int64]bool{}
	killed := make(chan struct{})
	for id := int64(1); ; id += 100 {
		if id == 2001 {
			go func() { defer close(killed); kill() }()
		}
		if id > 2001 && p.Session().State != bide.SessionUp {
			<-killed
			return confirmed, unknown
		}
		batch := sends(p, cfg, 100, 3)
		for i := range batch {
			batch[i].Message.TaskID = id + int64(i)
		}
		for i, o := range p.Publish(t.Context(), batch) {
			switch o.Status {
			case bide.Confirmed:
				confirmed[batch[i].Message.TaskID] = true
			case bide.Unknown:
				unknown++
			case bide.Refused:
			}
		}
	}
}

// missingAfter counts how many of the wanted tasks do not arrive: it stops when
// all have, or when nothing has come for a while.
func missingAfter(t *testing.T, got <-chan bide.Delivery, want map[int64]bool) int {
	t.Helper()
	missing := len(want)
	for missing > 0 {
		select {
		case d := <-got:
			m, err := bide.ParseMessage(d.Body)
			require.NoError(t, err)
			if want[m.TaskID] {
				want[m.TaskID] = false
				missing--
			}
		case <-time.After(15 * time.Second):
			return missing
		}
	}
	return 0
}

// TestSilentTier: a tier whose queue does not confirm is named, never has more
// than a window in flight, and costs the others one session. Probes of it
// then cost them nothing.
func TestSilentTier(t *testing.T) {
	broker := ownBroker(t)
	cfg := broker.config()
	cfg.ConfirmTimeout = 4 * time.Second
	p, s := newPublisher(t, cfg), newSubscriber(t, cfg)
	brokertest.Start(t, p)
	got := consume(t, s, true)
	requireConfirmed(t, p.Publish(t.Context(), []bide.Send{send(p, cfg, 1, 1), send(p, cfg, 2, 2)}))
	receiveAll(t, got, 2)

	freeze(t, broker, cfg.Queues()[1], "suspend")
	thaw := sync.OnceFunc(func() { freeze(t, broker, cfg.Queues()[1], "resume") })
	t.Cleanup(thaw)
	outcomes := p.Publish(t.Context(), sends(p, cfg, 1000, 1))
	require.Zero(t, count(outcomes)[bide.Confirmed])
	require.LessOrEqual(t, count(outcomes)[bide.Unknown], 256)
	for _, o := range outcomes {
		if o.Status == bide.Unknown {
			require.ErrorIs(t, o.Err, bide.ErrConfirmTimeout)
			require.ErrorContains(t, o.Err, cfg.Queues()[1])
		}
	}
	awaitState(t, p.Session, bide.SessionUp, patience)
	requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 500, 2)))

	probe := func() bide.Outcome { return p.Publish(t.Context(), []bide.Send{send(p, cfg, 0, 1)})[0] }
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	steady := true
	others.Go(func() {
		for id := int64(1); ctx.Err() == nil; id++ {
			o := p.Publish(t.Context(), []bide.Send{send(p, cfg, id, 2)})[0]
			steady = steady && o.Status == bide.Confirmed && p.Session().State == bide.SessionUp
		}
	})
	for range 3 {
		o := probe()
		require.NotEqual(t, bide.Confirmed, o.Status)
		require.ErrorIs(t, o.Err, bide.ErrConfirmTimeout)
	}
	cancel()
	others.Wait()
	require.True(t, steady, "a probe of a silent tier disturbs no other")

	thaw()
	require.Eventually(t, func() bool { return probe().Status == bide.Confirmed }, patience, 50*time.Millisecond)
	requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 300, 1)))
}

// freeze suspends or resumes the Raft member of a quorum queue.
func freeze(t testing.TB, broker *instance, queue, verb string) {
	t.Helper()
	broker.do(t, "ctl", "eval", `sys:`+verb+`(whereis(list_to_existing_atom("%2F_`+queue+`"))).`)
}
