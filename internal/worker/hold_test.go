package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// knownClock is one that knows the database's clock to be ours.
func knownClock() *clock {
	c := newClock()
	c.observe(time.Now())
	return c
}

func TestHoldReleasesInOrderAndAtTheTime(t *testing.T) {
	check(t, func(t *rapid.T) {
		h := newHold(knownClock())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var late []time.Duration
		go h.run(ctx, func(it *item) { late = append(late, time.Since(it.at)) })
		n := rapid.IntRange(1, 30).Draw(t, "items")
		for range n { // each added while earlier ones are awaited
			pass(time.Duration(rapid.IntRange(0, 50).Draw(t, "pause")) * time.Millisecond)
			require.True(t, h.add(&item{at: time.Now().Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "in")) * time.Millisecond)}))
		}
		pass(3 * time.Second)
		require.Equal(t, make([]time.Duration, n), late, "all of them, neither early nor late")
		require.Zero(t, h.size())
	})
}

func TestHoldPassesOnWhatIsOverdueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHold(knownClock())
		late, later := &item{at: time.Now().Add(-time.Second)}, &item{at: time.Now().Add(-time.Minute)}
		require.True(t, h.add(late))
		require.True(t, h.add(later))
		due, wait := h.take()
		require.Equal(t, []*item{later, late}, due)
		require.Positive(t, wait)
	})
}

func TestAClosedHoldKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHold(knownClock())
		kept := &item{at: time.Now().Add(time.Second)}
		require.True(t, h.add(kept))
		require.Equal(t, []*item{kept}, h.close())
		require.False(t, h.add(&item{}))
		require.Zero(t, h.size())
	})
}

// BenchmarkHold adds and takes an item among 10,000 others.
func BenchmarkHold(b *testing.B) {
	h := newHold(knownClock())
	far := time.Now().Add(time.Hour)
	for i := range 10_000 {
		h.add(&item{at: far.Add(time.Duration(i))})
	}
	it := &item{at: time.Now().Add(-time.Second)}
	b.ReportAllocs()
	for b.Loop() {
		h.add(it)
		h.take()
	}
}
