package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/rabbit"
)

// admin is a channel for the test's own business with the system's broker.
func (s *system) admin(t testing.TB) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(s.site.Rabbit.URL)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	require.NoError(t, err)
	return ch
}

// ready returns how many messages wait in the queue.
func ready(t testing.TB, ch *amqp.Channel, queue string) int {
	t.Helper()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	require.NoError(t, err)
	return q.Messages
}

// awaitReady waits until as many messages wait in the queue as are enough.
func awaitReady(t testing.TB, ch *amqp.Channel, queue string, enough func(int) bool) {
	t.Helper()
	begun := time.Now()
	for n := ready(t, ch, queue); !enough(n); n = ready(t, ch, queue) {
		require.Less(t, time.Since(begun), 10*time.Second, "%d messages in %s", n, queue)
		await(t.Context(), 5*time.Millisecond)
	}
}

func exactly(want int) func(int) bool { return func(n int) bool { return n == want } }

// tier returns the queue of a level, counted from 1.
func (s *system) tier(level int) string { return s.site.Rabbit.Queues()[level] }

// setPolicy gives one queue of the broker a policy until the test ends.
func (s *system) setPolicy(t testing.TB, queue, definition string) {
	t.Helper()
	base, err := url.Parse(variable(t, "BIDE_TEST_RABBITMQ_MANAGEMENT_URL"))
	require.NoError(t, err)
	at := fmt.Sprintf("http://%s/api/policies/%%2F/%s", base.Host, url.PathEscape(queue))
	call := func(method, body string) {
		request, err := http.NewRequestWithContext(context.Background(), method, at, strings.NewReader(body))
		require.NoError(t, err)
		password, _ := base.User.Password()
		request.SetBasicAuth(base.User.Username(), password)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Less(t, response.StatusCode, 300, "%s %s: %s", method, at, response.Status)
	}
	pattern := "^" + strings.ReplaceAll(queue, ".", `\\.`) + "$"
	call(http.MethodPut, fmt.Sprintf(`{"pattern": "%s", "definition": %s, "apply-to": "queues", "priority": 10}`, pattern, definition))
	t.Cleanup(func() { call(http.MethodDelete, "") })
}

// One broker serves both outages, one after the other.
func TestBrokerOutageUnderLoad(t *testing.T) {
	t.Parallel()
	broker := startServer(t, "rabbitmq")
	for _, outage := range []struct {
		name, begin, end string
		lasting          time.Duration
	}{
		{"stopped for 10 s and started again", "stop", "restart", 10 * time.Second},
		{"paused for 5 s", "pause", "resume", 5 * time.Second},
	} {
		t.Run(outage.name, func(t *testing.T) {
			connect(t, newShop(t), broker.url).survive(t, func() {
				broker.do(t, outage.begin)
				await(t.Context(), outage.lasting)
				broker.do(t, outage.end)
			})
		})
	}
}

// survive runs a system under load through an outage of its broker, and returns
// when that was over.
func (s *system) survive(t testing.TB, outage func()) (back time.Time) {
	t.Helper()
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	s.startWorker(t, workerSpec{})
	s.underLoad(t, 2, 8*time.Second, func() {
		await(t.Context(), 2*time.Second)
		outage()
		back = time.Now()
		await(t.Context(), 3*time.Second)
	})
	s.awaitDone(t, 90*time.Second)
	v := s.requireKept(t, promised)
	require.Greater(t, v.Closed, 100)
	require.NotZero(t, s.via(t, "sweep"), "the sweep stood in")
	require.NotZero(t, s.count(t, "SELECT count(*) FROM bide.delay_task_history WHERE via = 'broker' AND finished_at > $1", back.Add(time.Second)),
		"the broker carries again")
	return back
}

func TestTierQueuePurged(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{})
	s.place(t, 200, 4100*time.Millisecond, 20*time.Millisecond)
	awaitReady(t, s.admin(t), s.tier(3), func(n int) bool { return n >= 20 })
	lost, err := rabbit.PurgeTier(t.Context(), *s.site.Rabbit, 10, 1000)
	require.NoError(t, err)
	require.NotZero(t, lost)

	s.awaitDone(t, 20*time.Second)
	s.requireKept(t, promised)
	require.GreaterOrEqual(t, s.via(t, "sweep"), lost)
}

func TestDeliveryQueuePurged(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.startRelay(t, relaySpec{})
	s.startWorker(t, workerSpec{}).stop(t) // it has made the queue
	orders := s.place(t, 100, 2*time.Second, 0)
	ch := s.admin(t)
	awaitReady(t, ch, s.site.Rabbit.DeliveryQueue(), exactly(len(orders)))
	lost, err := ch.QueuePurge(s.site.Rabbit.DeliveryQueue(), false)
	require.NoError(t, err)
	require.Equal(t, len(orders), lost)

	s.startWorker(t, workerSpec{})
	s.awaitDone(t, 20*time.Second)
	s.requireKept(t, 10*time.Second)
	require.Equal(t, len(orders), s.via(t, "sweep"))
}
