package worker

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

func TestInboxGivesWhatHasGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox()
		var sizes []int
		go func() {
			for batch := in.take(t.Context(), 500); len(batch) > 0; batch = in.take(t.Context(), 500) {
				sizes = append(sizes, len(batch))
			}
		}()
		synctest.Wait()
		require.Empty(t, sizes, "it waits")
		in.mu.Lock() // the taker meets all of them at once
		in.waiting = make([]arrival, 1200)
		in.mu.Unlock()
		in.add(arrival{})
		synctest.Wait()
		require.Equal(t, []int{500, 500, 201}, sizes)
		in.add(arrival{})
		in.close()
		synctest.Wait()
		require.Equal(t, []int{500, 500, 201, 1}, sizes, "what came before the close is given; then it ends")
	})
}

func TestInboxEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Empty(t, newInbox().take(ctx, 1))
}

func BenchmarkInbox(b *testing.B) {
	in := newInbox()
	a := arrival{message: bide.Message{TaskID: 1}}
	b.ReportAllocs()
	for b.Loop() {
		for range 200 {
			in.add(a)
		}
		in.take(b.Context(), peekBatch)
	}
}
