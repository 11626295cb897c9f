package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCustomersKeepToTheConfiguration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Int64Range(1, 10_000).Draw(t, "least delay, ms")
		cfg := Config{
			Orders:   rapid.IntRange(1, 200).Draw(t, "orders"),
			Duration: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "duration")),
			MinDelay: time.Duration(least) * time.Millisecond,
			MaxDelay: time.Duration(rapid.Int64Range(least, 20_000).Draw(t, "greatest delay, ms")) * time.Millisecond,
			Seed:     rapid.Uint64().Draw(t, "seed"),
		}
		all := customers(cfg)
		require.Len(t, all, cfg.Orders)
		require.Equal(t, all, customers(cfg), "the same seed, another trade")
		for _, c := range all {
			require.GreaterOrEqual(t, c.delay, cfg.MinDelay)
			require.LessOrEqual(t, c.delay, cfg.MaxDelay)
			require.Zero(t, c.delay%time.Millisecond)
			require.LessOrEqual(t, c.arrives, cfg.Duration)
			require.NotEmpty(t, c.lines)
			for _, l := range c.lines {
				require.True(t, l.sku >= 1 && l.sku <= skus && l.quantity > 0, "%+v", l)
			}
			if c.ending == extend {
				require.Negative(t, c.asks)
				require.Positive(t, c.pays)
			}
		}
	})
}

// The default run is the one that is advertised.
func TestDefaultTrade(t *testing.T) {
	cfg := Config{}.withDefaults()
	var paying, racing, cancelling, asking, tiers int
	for _, c := range customers(cfg) {
		if c.ending != leave {
			paying++
		}
		if c.ending == pay && c.pays.Abs() <= brink {
			racing++
		}
		if c.ending == pay && c.cancels {
			cancelling++
		}
		if c.ending == extend {
			asking++
		}
		if c.delay == time.Second || c.delay == 10*time.Second {
			tiers++
		}
	}
	require.InDelta(t, 2000.0/3, float64(paying)-float64(racing)/2, 50, "a third pays, half of the races being won")
	require.InDelta(t, 200, racing, 40, "some of them within 50 ms of the deadline")
	require.InDelta(t, 333, cancelling, 40, "half cancel the task themselves")
	require.InDelta(t, 67, asking, 20, "a few ask for time")
	require.Less(t, tiers, 40, "most delays are no tier's")
}
