package rabbit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rabbit"
)

// send makes a send for a level of the publisher's.
func send(p *rabbit.Publisher, cfg rabbit.Config, id int64, level int) bide.Send {
	at := time.Now()
	if level > 0 {
		at = at.Add(p.Capabilities().Delays[level-1])
	}
	return bide.Send{Level: level, Message: bide.Message{Ledger: cfg.Ledger, TaskID: id, RunAt: at, DeliverAt: at}}
}

func sends(p *rabbit.Publisher, cfg rabbit.Config, n, level int) []bide.Send {
	all := make([]bide.Send, n)
	for i := range all {
		all[i] = send(p, cfg, int64(i+1), level)
	}
	return all
}

func requireConfirmed(t testing.TB, outcomes []bide.Outcome) {
	t.Helper()
	for i, o := range outcomes {
		require.NoError(t, o.Err, "send %d", i)
		require.Equal(t, bide.Confirmed, o.Status, "send %d", i)
	}
}

func count(outcomes []bide.Outcome) map[bide.Status]int {
	n := map[bide.Status]int{}
	for _, o := range outcomes {
		n[o.Status]++
	}
	return n
}

// consume runs a subscriber until t ends and returns its deliveries.
func consume(t testing.TB, s *rabbit.Subscriber, ack bool) <-chan bide.Delivery {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	deliveries := make(chan bide.Delivery, 100_000)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Subscribe(ctx, func(d bide.Delivery) {
			deliveries <- d
			if ack {
				d.Ack()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool { return s.Session().State == bide.SessionUp }, patience, time.Millisecond)
	return deliveries
}

// receive returns the next delivery.
func receive(t testing.TB, deliveries <-chan bide.Delivery) bide.Delivery {
	t.Helper()
	select {
	case d := <-deliveries:
		return d
	case <-time.After(patience):
		require.FailNow(t, "no delivery")
		return bide.Delivery{}
	}
}

// receiveAll waits until tasks 1 to n have come, in any order and number.
func receiveAll(t testing.TB, deliveries <-chan bide.Delivery, n int) {
	t.Helper()
	seen := map[int64]bool{}
	for len(seen) < n {
		m, err := bide.ParseMessage(receive(t, deliveries).Body)
		require.NoError(t, err)
		seen[m.TaskID] = true
	}
}

// TestDeletedTier: an unroutable message is refused, not confirmed, and its
// queue is made again.
func TestDeletedTier(t *testing.T) {
	for _, of := range []rabbit.QueueType{rabbit.Quorum, rabbit.Classic} {
		t.Run(string(of), func(t *testing.T) {
			cfg := cleanConfig(t)
			cfg.QueueType = of
			p := newPublisher(t, cfg)
			brokertest.Start(t, p)
			got := consume(t, newSubscriber(t, cfg), true)

			_, err := admin(t, cfg.URL).QueueDelete(cfg.Queues()[1], false, false, false)
			require.NoError(t, err)
			first := p.Publish(t.Context(), []bide.Send{send(p, cfg, 1, 1), send(p, cfg, 2, 2), send(p, cfg, 1, 1)})
			for _, i := range []int{0, 2} {
				require.Equal(t, bide.Refused, first[i].Status)
				require.ErrorIs(t, first[i].Err, bide.ErrUnroutable)
				require.ErrorContains(t, first[i].Err, cfg.Queues()[1])
			}
			require.Equal(t, bide.Confirmed, first[1].Status, "the other tiers go on")

			require.Eventually(t, func() bool {
				return p.Publish(t.Context(), []bide.Send{send(p, cfg, 1, 1)})[0].Status == bide.Confirmed
			}, patience, 10*time.Millisecond)
			receiveAll(t, got, 2)
		})
	}
}

// TestDeletedUsedTier: a tier deleted after it was published to makes RabbitMQ
// close the connection at the next publish, and the next session declares it.
func TestDeletedUsedTier(t *testing.T) {
	cfg := cleanConfig(t)
	p := newPublisher(t, cfg)
	brokertest.Start(t, p)
	requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 10, 1)))
	_, err := admin(t, cfg.URL).QueueDelete(cfg.Queues()[1], false, false, false)
	require.NoError(t, err)
	outcomes := p.Publish(t.Context(), sends(p, cfg, 10, 1))
	require.Zero(t, count(outcomes)[bide.Confirmed], "%v", outcomes)
	require.Eventually(t, func() bool {
		return p.Publish(t.Context(), []bide.Send{send(p, cfg, 1, 1)})[0].Status == bide.Confirmed
	}, patience, 10*time.Millisecond)
}

// TestDeletedDeliveryQueue: the deliveries end under a living connection; the
// queue is made again and consumed again at once, and what was delivered
// before can be acknowledged without harm.
func TestDeletedDeliveryQueue(t *testing.T) {
	for _, of := range []rabbit.QueueType{rabbit.Quorum, rabbit.Classic} {
		t.Run(string(of), func(t *testing.T) {
			cfg := cleanConfig(t)
			cfg.QueueType = of
			p, s := newPublisher(t, cfg), newSubscriber(t, cfg)
			brokertest.Start(t, p)
			got := consume(t, s, false)
			requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 3, bide.LevelNone)))
			stale := []bide.Delivery{receive(t, got), receive(t, got), receive(t, got)}

			_, err := admin(t, cfg.URL).QueueDelete(cfg.DeliveryQueue(), false, false, false)
			require.NoError(t, err)
			deleted := time.Now()
			require.Eventually(t, func() bool {
				return p.Publish(t.Context(), []bide.Send{send(p, cfg, 7, bide.LevelNone)})[0].Status == bide.Confirmed
			}, patience, 10*time.Millisecond)
			fresh := receive(t, got)
			require.Less(t, time.Since(deleted), 5*time.Second)
			for _, d := range stale {
				d.Ack()
			}
			fresh.Ack()
			requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 3, bide.LevelNone)))
			for range 3 {
				receive(t, got).Ack()
			}
			require.Eventually(t, func() bool { return s.Session().State == bide.SessionUp }, patience, time.Millisecond)
		})
	}
}

// TestDeadLettersSurvive: quorum tiers give their messages to a delivery queue
// that is missing when they expire, as soon as it is back: at-least-once works
// through the default exchange.
func TestDeadLettersSurvive(t *testing.T) {
	t.Parallel()
	cfg := cleanConfig(t)
	p := newPublisher(t, cfg)
	brokertest.Start(t, p)
	requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 100, 1)))
	ch := admin(t, cfg.URL)
	_, err := ch.QueueDelete(cfg.DeliveryQueue(), false, false, false)
	require.NoError(t, err)
	expired := time.Now().Add(time.Second)
	require.Eventually(t, func() bool { return time.Now().After(expired) }, patience, 50*time.Millisecond)
	receiveAll(t, consume(t, newSubscriber(t, cfg), true), 100)
}

// TestRemovedTierDrains: what is in a tier that the configuration no longer
// has arrives all the same.
func TestRemovedTierDrains(t *testing.T) {
	t.Parallel()
	cfg := cleanConfig(t)
	management := variable(t, "BIDE_TEST_RABBITMQ_MANAGEMENT_URL")
	p := newPublisher(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	require.Eventually(t, func() bool { return p.Session().State == bide.SessionUp }, patience, time.Millisecond)
	requireConfirmed(t, p.Publish(ctx, sends(p, cfg, 50, 3)))
	stop()
	require.NoError(t, <-ended)

	fewer := cfg
	fewer.Tiers = levels.Table{cfg.Tiers[0]}
	brokertest.Start(t, newPublisher(t, fewer))
	receiveAll(t, consume(t, newSubscriber(t, fewer), true), 50)
	fewer.ManagementURL = management
	requireFinding(t, rabbit.Check(t.Context(), fewer), bide.SeverityInfo, "queue "+cfg.Queues()[3], "is a tier that the configuration does not have")
}

// TestQueueTypeSwitch: messages of the old type's tiers and delivery queue
// reach a subscriber of the new type.
func TestQueueTypeSwitch(t *testing.T) {
	for _, from := range []rabbit.QueueType{rabbit.Quorum, rabbit.Classic} {
		t.Run("from "+string(from), func(t *testing.T) {
			before := cleanConfig(t)
			before.QueueType = from
			after := before
			after.QueueType = map[rabbit.QueueType]rabbit.QueueType{rabbit.Quorum: rabbit.Classic, rabbit.Classic: rabbit.Quorum}[from]
			p := newPublisher(t, before)
			brokertest.Start(t, p)
			requireConfirmed(t, p.Publish(t.Context(), append(sends(p, before, 10, 2), send(p, before, 11, bide.LevelNone))))
			s := newSubscriber(t, after)
			receiveAll(t, consume(t, s, true), 11)

			_, err := admin(t, before.URL).QueueDelete(before.DeliveryQueue(), false, false, false)
			require.NoError(t, err)
			next := newPublisher(t, after)
			brokertest.Start(t, next)
			requireConfirmed(t, next.Publish(t.Context(), sends(next, after, 1, 1)))
			require.Equal(t, bide.SessionUp, s.Session().State, "the old queue is not missed")
		})
	}
}

// TestLaterFaultIsRetried: what ends a start does not end a running service.
func TestLaterFaultIsRetried(t *testing.T) {
	address := sharedURL(t)
	proxy := brokertest.NewProxy(t, hostOf(t, address))
	cfg := cleanConfig(t)
	cfg.URL = through(t, address, proxy)
	p := newPublisher(t, cfg)
	brokertest.Start(t, p)
	ch := admin(t, address)
	tier := cfg.Queues()[1]
	_, err := ch.QueueDelete(tier, false, false, false)
	require.NoError(t, err)
	_, err = ch.QueueDeclare(tier, true, false, false, false, map[string]any{"x-queue-type": "classic"})
	require.NoError(t, err)
	proxy.Cut()
	require.Eventually(t, func() bool {
		fault := new(bide.Fault)
		return p.Session().State == bide.SessionDown && errors.As(p.Session().Err, &fault)
	}, patience, time.Millisecond)
	_, err = ch.QueueDelete(tier, false, false, false)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.Session().State == bide.SessionUp }, patience, time.Millisecond)
}
