package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever the answers' ways take, the estimate is never ahead of the
// database's clock, and behind it by no more than the fastest of the last
// answers took.
func TestClockIsNeverAhead(t *testing.T) {
	check(t, func(t *rapid.T) {
		ms := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Millisecond
		}
		skew := ms("skew", 1e9) - ms("behind", 1e9)
		c := newClock()
		var took []time.Duration
		for range rapid.IntRange(1, 40).Draw(t, "answers") {
			answer, way := time.Now().Add(skew), ms("way", 500)
			<-time.After(way)
			c.observe(answer)
			if took = append(took, way); len(took) > clockSamples {
				took = took[1:]
			}
			<-time.After(ms("pause", 5000))
			behind := time.Now().Add(skew).Sub(c.now())
			require.GreaterOrEqual(t, behind, time.Duration(0))
			fastest := took[0]
			for _, d := range took {
				fastest = min(fastest, d)
			}
			require.Equal(t, fastest, behind)
		}
	})
}

func TestClockForgetsAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		c.observe(time.Now().Add(time.Hour))
		for range clockSamples {
			c.observe(time.Now())
		}
		require.WithinDuration(t, time.Now(), c.now(), 0)
	})
}

func BenchmarkClockNow(b *testing.B) {
	c := newClock()
	for range clockSamples {
		c.observe(time.Now())
	}
	b.ReportAllocs()
	for b.Loop() {
		c.now()
	}
}
