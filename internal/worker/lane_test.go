package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// started is a batch and how long after the beginning it was started.
type started struct {
	size  int
	after time.Duration
}

// runLane starts a lane with batches of 5 and a wait of 3 ms. Each execution
// takes so long, one at a time.
func runLane(t *testing.T, takes time.Duration) (l *lane, batches *[]started) {
	l, batches = newLane(5, 1), &[]started{}
	begun := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go l.run(ctx, 3*time.Millisecond, func(b []*item) {
		*batches = append(*batches, started{len(b), time.Since(begun)})
		<-time.After(takes)
	})
	return l, batches
}

func addItems(t *testing.T, l *lane, n int) {
	t.Helper()
	for range n {
		require.True(t, l.add(&item{via: bide.ViaBroker}))
	}
}

func TestLaneWaitsForCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, batches := runLane(t, 0)
		addItems(t, l, 1)
		pass(2 * time.Millisecond)
		addItems(t, l, 2)
		pass(10 * time.Millisecond)
		require.Equal(t, []started{{3, 3 * time.Millisecond}}, *batches)
	})
}

func TestLaneStartsAFullBatchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, batches := runLane(t, 0)
		addItems(t, l, 12)
		pass(10 * time.Millisecond)
		require.Equal(t, []started{{5, 0}, {5, 0}, {2, 3 * time.Millisecond}}, *batches)
	})
}

func TestBatchesGrowWithTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, batches := runLane(t, 20*time.Millisecond)
		for range 6 {
			addItems(t, l, 1)
			pass(5 * time.Millisecond)
		}
		pass(time.Second)
		require.Equal(t, []started{{1, 3 * time.Millisecond}, {5, 25 * time.Millisecond}}, *batches)
	})
}

// What came while a full batch was about to be taken has its own wait.
func TestTakingABatchTakesItsSignalBack(t *testing.T) {
	t.Parallel()
	l := newLane(5, 1)
	addItems(t, l, 5)
	<-l.full
	addItems(t, l, 1)
	require.Len(t, l.take(), 5)
	require.Empty(t, l.full)
	require.NotEmpty(t, l.wake)
	require.Len(t, l.take(), 1)
	require.Empty(t, l.wake)
}

func TestLaneMixesNoWays(t *testing.T) {
	t.Parallel()
	l := newLane(5, 1)
	for id, via := range []bide.Via{bide.ViaBroker, bide.ViaBroker, bide.ViaSweep, bide.ViaBroker} {
		require.True(t, l.add(&item{id: int64(id), via: via}))
	}
	var taken [][]int64
	for batch := l.take(); len(batch) > 0; batch = l.take() {
		ids, _ := index(batch)
		taken = append(taken, ids)
	}
	require.Equal(t, [][]int64{{0, 1}, {2}, {3}}, taken)
}

func TestAClosedLaneTakesNothing(t *testing.T) {
	t.Parallel()
	l := newLane(5, 1)
	addItems(t, l, 3)
	require.Len(t, l.close(), 3)
	require.False(t, l.add(&item{}))
	require.Empty(t, l.take())
}

// BenchmarkLane passes a batch of 200 through.
func BenchmarkLane(b *testing.B) {
	l := newLane(200, 1)
	it := &item{via: bide.ViaBroker}
	b.ReportAllocs()
	for b.Loop() {
		for range 200 {
			l.add(it)
		}
		l.take()
	}
}
