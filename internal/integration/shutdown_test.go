package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever stops while it holds tasks hands them back, and another worker has
// them on time.
func TestShutdownHandsHeldMessagesBack(t *testing.T) {
	t.Parallel()
	for name, open := range brokers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			if s.site.Rabbit != nil { // RocketMQ's messages are held long enough
				s.site.Rabbit.Lead = 250 * time.Millisecond
			}
			s.startRelay(t, relaySpec{})
			leaving := s.startWorker(t, workerSpec{})
			s.startWorker(t, workerSpec{})
			s.place(t, 400, 2*time.Second, 10*time.Millisecond)
			require.Eventually(t, func() bool { return leaving.held() >= 5 }, 10*time.Second, time.Millisecond, "they are held before they are due")
			begun := time.Now()
			leaving.stop(t)
			t.Logf("stopped within %s", time.Since(begun))
			require.Zero(t, leaving.held())

			s.awaitDone(t, 20*time.Second)
			s.requireKept(t, 10*time.Second)
			suspicion := 0
			if s.site.Rocket != nil {
				suspicion = 1 // a queue's next owner cannot tell what its last one had
			}
			require.Zero(t, s.count(t, "SELECT count(*) FROM bide.delay_task_history WHERE reclaims > $1", suspicion), "a clean end casts no suspicion")
		})
	}
}

// What runs ends: its effect is committed and its message acknowledged.
func TestShutdownFinishesWhatRuns(t *testing.T) {
	t.Parallel()
	for name, open := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			if s.site.hasBroker() {
				s.startRelay(t, relaySpec{})
			}
			begun, end := make(chan struct{}), make(chan struct{})
			leaving := s.startWorker(t, workerSpec{handler: stuck(begun, end, nil)})
			s.place(t, 10, time.Second, 0)
			<-begun
			leaving.cancel()
			close(end)
			leaving.stop(t)
			s.awaitDone(t, time.Second)
			s.requireKept(t, promised)
		})
	}
}

// A relay that stops settles what it has in hand.
func TestShutdownOfARelaySettlesItsBatches(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	leaving := s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	s.place(t, 500, time.Second, 4*time.Millisecond)
	s.await(t, 10*time.Second, 1, "SELECT 1 WHERE EXISTS (SELECT FROM bide.delay_task WHERE status = 'SENT')")
	leaving.stop(t)
	require.Zero(t, s.count(t, "SELECT count(*) FROM bide.relay_batch"))
	s.awaitDone(t, 20*time.Second)
	s.requireKept(t, promised)
	require.NotZero(t, s.via(t, "sweep"), "what it had not sent yet")
}
