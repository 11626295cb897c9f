package integration

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/internal/worker"
)

// A message is a hint to look: whatever stands in the delivery queue, however
// often and in whatever order, costs a look and no effect.
func TestMessagesReplayedShuffledForgedGarbledAndHuge(t *testing.T) {
	t.Parallel()
	for name, open := range brokers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testHostileMessages(t, open(t))
		})
	}
}

func testHostileMessages(t *testing.T, s *system) {
	tap := &tap{}
	s.startRelay(t, relaySpec{publisher: tap.on})
	s.startWorker(t, workerSpec{})
	const n, replays = 200, 5
	s.place(t, n, 3*time.Second, 10*time.Millisecond)
	far := s.place(t, 20, 3*time.Hour, 0) // further than any broker of the tests takes
	chance := random(t)
	var bodies [][]byte
	bodies = append(bodies, forged(s.ledger.ID(), far)...)
	bodies = append(bodies, garbage(chance)...)
	begun := time.Now()
	inject := s.injector(t)
	live := n + len(far)
	for live > len(far) || len(bodies) > 0 { // while the tasks come due
		require.Less(t, time.Since(begun), time.Minute, "%d tasks left", live-len(far))
		live = s.count(t, "SELECT count(*) FROM bide.delay_task")
		for _, m := range tap.take() {
			bodies = append(bodies, slices.Repeat([][]byte{m.Body()}, replays)...)
		}
		chance.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
		some := min(len(bodies), 40)
		inject(bodies[:some])
		bodies = bodies[some:]
		await(t.Context(), 20*time.Millisecond)
	}
	s.awaitCounts(t, map[worker.Event]int{worker.Garbage: garbageKinds, worker.Foreign: len(far), worker.Arrived: tap.len()*(replays+1) + garbageKinds + forgeries*len(far)})
	require.NotZero(t, tap.len())

	v := s.judge(t)
	require.Equal(t, n, v.Closed)
	require.Equal(t, len(far), v.Lost, "they have time")
	require.Zero(t, v.Early+v.Double)
	require.LessOrEqual(t, v.latest(), promised)
	s.requireAudit(t, 0)
}

// awaitCounts waits until each event was counted so often, and not once more.
func (s *system) awaitCounts(t testing.TB, want map[worker.Event]int) {
	t.Helper()
	for event, n := range want {
		require.Eventually(t, func() bool { return s.tally.of(event) >= n }, 10*time.Second, 10*time.Millisecond, event)
		require.Equal(t, n, s.tally.of(event), event)
	}
}

// injector returns a function that puts bodies where the worker finds them.
func (s *system) injector(t testing.TB) func(bodies [][]byte) {
	if s.site.Rocket != nil {
		return s.rocketInjector(t)
	}
	ch := s.admin(t)
	require.NoError(t, ch.Confirm(false))
	return func(bodies [][]byte) {
		for _, b := range bodies {
			confirm, err := ch.PublishWithDeferredConfirm("", s.site.Rabbit.DeliveryQueue(), true, false, amqp.Publishing{Body: b})
			require.NoError(t, err)
			acked, err := confirm.WaitContext(t.Context())
			require.NoError(t, err)
			require.True(t, acked)
		}
	}
}

const forgeries = 5

// forged returns messages for tasks that are not due: early by their own word
// and by the ledger's, with times that the ledger does not know, for tasks that
// do not exist, and from another ledger.
func forged(ledger bide.LedgerID, orders []order) (bodies [][]byte) {
	now := time.Now()
	for i, o := range orders {
		id := int64(i + 1)
		for _, m := range []bide.Message{
			{Ledger: ledger, TaskID: id, RunAt: now, DeliverAt: now},
			{Ledger: ledger, TaskID: id, RunAt: o.deadline, DeliverAt: now},
			{Ledger: ledger, TaskID: id, RunAt: time.UnixMicro(1), DeliverAt: o.deadline},
			{Ledger: ledger, TaskID: 1e12 + id, RunAt: now, DeliverAt: now},
			{Ledger: brokertest.NewLedger(), TaskID: id, RunAt: now, DeliverAt: now},
		} {
			bodies = append(bodies, m.Body())
		}
	}
	return bodies
}

const garbageKinds = 7

// garbage returns bodies that are no messages, two of them of 1 MB.
func garbage(chance *rand.Rand) [][]byte {
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(chance.Uint32())
	}
	return [][]byte{
		nil, []byte("bide1"), []byte("bide2 1 2 3"), []byte(`{"task_id": 1}`), noise[:100],
		noise, bytes.Repeat([]byte("bide1 "), 1<<20/6),
	}
}

// tap listens to what a relay publishes.
type tap struct {
	bide.Publisher
	mu    sync.Mutex
	fresh []bide.Message
	total int
}

func (p *tap) on(inner bide.Publisher) bide.Publisher {
	p.Publisher = inner
	return p
}

func (p *tap) Publish(ctx context.Context, sends []bide.Send) []bide.Outcome {
	outcomes := p.Publisher.Publish(ctx, sends)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range sends {
		p.fresh = append(p.fresh, s.Message)
	}
	p.total += len(sends)
	return outcomes
}

// take returns what was published since the last call.
func (p *tap) take() []bide.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := p.fresh
	p.fresh = nil
	return fresh
}

func (p *tap) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}
