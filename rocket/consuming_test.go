package rocket_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rocket"
	"github.com/bide-mq/bide/rocket/internal/remoting"
)

// TestConsumersComeAndGo: three workers, of which one or two are away at any
// time, get everything.
func TestConsumersComeAndGo(t *testing.T) {
	t.Parallel()
	cfg := shared(t, "5").config(rocket.Auto)
	p := run(t, cfg)
	arrived := make(chan arrival, 1_000_000)
	start := func() (stop func()) {
		s := newSubscriber(t, cfg)
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() {
			ended <- s.Subscribe(ctx, func(d bide.Delivery) {
				arrived <- arrival{d, time.Now()}
				d.Ack()
			})
		}()
		await(t, s, bide.SessionUp)
		return func() {
			cancel()
			require.NoError(t, <-ended)
		}
	}
	stops := []func(){start(), start()}
	load := startLoad(t, p, cfg)
	for range 4 {
		stops = append(stops, start())
		pause(time.Second)
		stops[0]()
		stops = stops[1:]
		pause(time.Second)
	}
	ids := load.stop()
	in := &intake{arrivals: arrived}
	in.all(t, ids)
	for _, stop := range stops {
		stop()
	}
}

// TestHandedOver: what a worker holds when another takes over its queue comes
// again, marked, and what comes later is not.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	cfg := shared(t, "5").config(rocket.Auto)
	p := run(t, cfg)
	first := subscribe(t, cfg, false)
	const n = 64 // each of the 8 queues has some
	for id := range int64(n) {
		confirm(t, p, now(cfg, id+1))
	}
	for range n {
		require.False(t, first.next(t).Redelivered)
	}
	second := subscribe(t, cfg, true)
	a := second.next(t)
	require.True(t, a.Redelivered)
	require.LessOrEqual(t, a.message(t).TaskID, int64(n))
	for id := range int64(n) {
		confirm(t, p, now(cfg, n+id+1))
	}
	require.Eventually(t, func() bool {
		a := second.next(t)
		fresh := a.message(t).TaskID > n
		require.Equal(t, !fresh, a.Redelivered, "task %d", a.message(t).TaskID)
		return fresh
	}, patience, time.Microsecond)
}

// TestReplacedConsumer: a consumer that the broker lists although the worker has
// replaced it takes no queue from the one that lives.
func TestReplacedConsumer(t *testing.T) {
	t.Parallel()
	i := shared(t, "5")
	cfg := i.config(rocket.Auto)
	p, in := run(t, cfg), subscribe(t, cfg, true)
	_, instance, _ := strings.Cut(consumers(t, i, cfg)[0], "@")
	ghost, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver(cfg.NameServers)),
		consumer.WithGroupName(cfg.Group()),
		consumer.WithInstance(strings.TrimSuffix(instance, "1")+"0"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	require.NoError(t, err)
	require.NoError(t, ghost.Subscribe(cfg.Topic(), consumer.MessageSelector{}, func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		return consumer.ConsumeSuccess, nil
	}))
	require.NoError(t, ghost.Start())
	t.Cleanup(func() { require.NoError(t, ghost.Shutdown()) })
	require.Eventually(t, func() bool { return len(consumers(t, i, cfg)) == 2 }, patience, 10*time.Millisecond)
	pause(time.Second) // the broker has told both of it
	ids := sequence(1, 64)
	for _, id := range ids {
		confirm(t, p, now(cfg, id))
	}
	in.all(t, ids)
}

// consumers are the clients in the group of the workers.
func consumers(t *testing.T, i installation, cfg rocket.Config) []string {
	t.Helper()
	conn, err := remoting.Dial(t.Context(), i.broker, remoting.Credentials{})
	require.NoError(t, err)
	defer conn.Close()
	clients, err := conn.Consumers(t.Context(), cfg.Group())
	require.NoError(t, err)
	return clients
}

// TestPanickingHandler: the message is acknowledged, and its queue goes on.
func TestPanickingHandler(t *testing.T) {
	t.Parallel()
	cfg := shared(t, "4").config(rocket.Auto)
	p := run(t, cfg)
	s := newSubscriber(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var calls atomic.Int64
	go func() {
		ended <- s.Subscribe(ctx, func(d bide.Delivery) {
			if calls.Add(1)%2 == 1 {
				panic("as it happens")
			}
			d.Ack()
		})
	}()
	await(t, s, bide.SessionUp)
	for id := range int64(40) {
		confirm(t, p, now(cfg, id+1))
	}
	require.Eventually(t, func() bool { return calls.Load() == 40 }, patience, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	subscribe(t, cfg, true).quiet(t, time.Second)
}

// TestHeldMessagesDoNotStopOthers: 40 messages in every queue are held while
// thousands pass.
func TestHeldMessagesDoNotStopOthers(t *testing.T) {
	t.Parallel()
	cfg := shared(t, "5").config(rocket.Auto)
	p, in := run(t, cfg), subscribe(t, cfg, false)
	var held []arrival
	for id := range int64(320) {
		confirm(t, p, now(cfg, id+1))
	}
	for range 320 {
		held = append(held, in.next(t))
	}
	const n = 16_000 // 2,000 per queue, the library's span twice
	sends := make([]bide.Send, n)
	for i := range sends {
		sends[i] = now(cfg, int64(1000+i))
	}
	confirm(t, p, sends...)
	for range n {
		in.next(t).Ack()
	}
	for _, a := range held {
		a.Ack()
	}
}

// TestWhatTravels: a message can be found by the task's id in RocketMQ's
// consoles, and has the same identity each time.
func TestWhatTravels(t *testing.T) {
	t.Parallel()
	cfg := shared(t, "5").config(rocket.Auto)
	cfg.Namespace = "shop"
	p, in := run(t, cfg), subscribe(t, cfg, true)
	messages := make(chan *primitive.MessageExt, 10)
	c, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver(cfg.NameServers)),
		consumer.WithGroupName("onlooker-"+cfg.Ledger.Short()),
		consumer.WithInstance("onlooker-"+brokertest.NewLedger().String()),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	require.NoError(t, err)
	require.NoError(t, c.Subscribe(cfg.Topic(), consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range ms {
			messages <- m
		}
		return consumer.ConsumeSuccess, nil
	}))
	require.NoError(t, c.Start())
	t.Cleanup(func() { require.NoError(t, c.Shutdown()) })
	sends := []bide.Send{now(cfg, 1), inTimer(cfg, 2)}
	confirm(t, p, sends...)
	in.all(t, []int64{1, 2})
	for range sends {
		m := <-messages
		got, err := bide.ParseMessage(m.Body)
		require.NoError(t, err)
		require.Equal(t, strconv.FormatInt(got.TaskID, 10), m.GetKeys())
		require.Equal(t, got.ID(), m.GetProperty("UNIQ_KEY"))
		require.Equal(t, cfg.Topic(), m.Topic)
	}
}
