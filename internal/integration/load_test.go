package integration

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// load places orders as customers do, a few every 20 ms, with deadlines of half
// a second to longest. It ends with ctx. A database that is down costs the shop
// orders, and Bide nothing.
func (s *system) load(ctx context.Context, chance *rand.Rand, perTick int, longest time.Duration) {
	const tick, shortest = 20 * time.Millisecond, 500 * time.Millisecond
	for ctx.Err() == nil {
		delay := shortest + time.Duration(chance.Int64N(int64(longest-shortest)))
		if _, err := s.tryPlace(ctx, perTick, delay, 7*time.Millisecond); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "the shop could not place orders", "err", err)
		}
		await(ctx, tick)
	}
}

// underLoad runs the story while orders come in.
func (s *system) underLoad(t testing.TB, perTick int, longest time.Duration, story func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	chance := random(t)
	go func() {
		defer close(over)
		s.load(ctx, chance, perTick, longest)
	}()
	defer func() { cancel(); <-over }()
	story()
}

func TestTwoRelaysAndThreeWorkersWithWorkersComingAndGoing(t *testing.T) {
	t.Parallel()
	for name, open := range brokers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.startRelay(t, relaySpec{})
			s.startRelay(t, relaySpec{})
			workers := []*service{s.startWorker(t, workerSpec{}), s.startWorker(t, workerSpec{}), s.startWorker(t, workerSpec{})}
			chance := random(t)
			s.underLoad(t, 4, 5*time.Second, func() {
				for range 4 {
					killed := s.spawn(t, orders{})
					await(t.Context(), 1500*time.Millisecond)
					i := chance.IntN(len(workers))
					workers[i].stop(t)
					killed.kill()
					workers[i] = s.startWorker(t, workerSpec{})
				}
			})
			s.awaitDone(t, 30*time.Second)
			late := promised
			if s.site.Rocket != nil {
				late = 10 * time.Second // what lay in a queue that changes hands is suspect, and tried alone
			}
			v := s.requireKept(t, late)
			require.Greater(t, v.Closed, 100)
			require.Greater(t, s.via(t, "broker"), v.Closed/2)
		})
	}
}

// The sweep is the engine, several workers share it, and only PostgreSQL is
// needed.
func TestWithoutABroker(t *testing.T) {
	t.Parallel()
	s := withoutBroker(t)
	s.startWorker(t, workerSpec{})
	leaving := s.startWorker(t, workerSpec{})
	s.underLoad(t, 4, 2*time.Second, func() {
		await(t.Context(), 2*time.Second)
		leaving.stop(t)
		await(t.Context(), 2*time.Second)
	})
	s.awaitDone(t, 20*time.Second)
	v := s.requireKept(t, promised)
	require.Equal(t, v.Closed, s.via(t, "sweep"))
}
