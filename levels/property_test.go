package levels_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
)

// drawn is a plan with what it was made of.
type drawn struct {
	levels.Plan
	caps  bide.Capabilities
	slack time.Duration
}

func drawPlan(t *rapid.T) drawn {
	caps := bide.Capabilities{Window: 1, Timers: rapid.Bool().Draw(t, "timers")}
	hold := levels.MaxLevelHold
	if caps.Timers {
		hold = levels.MaxTimerHold
	}
	slack := between(1, hold).Draw(t, "slack")
	caps.Lead = between(0, hold-slack).Draw(t, "lead")
	if caps.Timers {
		caps.Horizon = between(levels.MaxTimerHold+slack, 100*24*time.Hour).Draw(t, "horizon")
	} else {
		var last time.Duration
		for range rapid.IntRange(1, 20).Draw(t, "levels") {
			last += slack + between(1, 24*time.Hour).Draw(t, "gap")
			caps.Delays = append(caps.Delays, last)
		}
	}
	plan, err := levels.NewPlan(caps, slack)
	require.NoError(t, err)
	return drawn{plan, caps, slack}
}

func between(least, most time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(int64(least), int64(most)), func(n int64) time.Duration { return time.Duration(n) })
}

// drawRemaining favours the edges of the windows.
func (d drawn) drawRemaining(t *rapid.T) time.Duration {
	w := rapid.SampledFrom(d.Windows()).Draw(t, "window")
	return rapid.OneOf(
		between(math.MinInt64, math.MaxInt64),
		between(w.From-2, w.From+2),
		between(w.To-2, w.To+2),
		between(w.From, w.To-1),
	).Draw(t, "remaining")
}

// drawNow draws a time to the microsecond, as the ledger's clock would give it.
func drawNow(t *rapid.T) time.Time {
	return time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "now"))
}

func TestWindowsAreDisjointAndAscending(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plan := drawPlan(t)
		last := plan.caps.Lead
		for i, w := range plan.Windows() {
			require.GreaterOrEqual(t, w.From, last, "window %d", i)
			require.GreaterOrEqual(t, w.To-w.From, plan.slack, "window %d", i)
			last = w.To
		}
	})
}

func TestEveryRemainingTimeHasOneAnswer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plan := drawPlan(t)
		plan.requireOneAnswer(t, plan.drawRemaining(t))
	})
}

// requireOneAnswer compares At with what the windows alone say.
func (d drawn) requireOneAnswer(t require.TestingT, remaining time.Duration) {
	var within, below []levels.Window
	for _, w := range d.Windows() {
		switch {
		case remaining >= w.To:
			below = append(below, w)
		case remaining >= w.From:
			within = append(within, w)
		}
	}
	answer := d.At(remaining)
	switch {
	case len(within) > 0:
		require.Len(t, within, 1)
		require.Equal(t, levels.Answer{Kind: levels.Send, Level: within[0].Level}, answer)
	case len(below) > 0:
		w := below[len(below)-1]
		require.Equal(t, levels.Answer{Kind: levels.Wait, Level: w.Level, Wait: remaining - w.To + 1}, answer)
		require.Equal(t, levels.Answer{Kind: levels.Send, Level: w.Level}, d.At(remaining-answer.Wait), "after the wait")
		require.Equal(t, levels.Wait, d.At(remaining-answer.Wait+1).Kind, "a moment before")
	default:
		require.Equal(t, levels.Answer{Kind: levels.Sweep}, answer)
		require.Less(t, remaining, d.caps.Lead)
	}
}

func TestHandedOverWithinAWindowArrivesNeitherLateNorTooEarly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plan, now := drawPlan(t), drawNow(t)
		w := rapid.SampledFrom(plan.Windows()).Draw(t, "window")
		plan.requireOnTime(t, now, between(w.From, w.To-1).Draw(t, "remaining"))
	})
}

// requireOnTime checks what is left when the broker was asked to deliver: at
// least lead, or the margin of timers, and no more than the hold covers.
func (d drawn) requireOnTime(t require.TestingT, now time.Time, remaining time.Duration) {
	answer, runAt := d.At(remaining), now.Add(remaining)
	require.Equal(t, levels.Send, answer.Kind)
	at := d.DeliverAt(answer.Level, runAt, now)
	require.False(t, at.Before(now), "asked to deliver in the past")
	left := runAt.Sub(at)
	switch {
	case answer.Level == bide.LevelTimer:
		require.Zero(t, at.Nanosecond(), "a whole second")
		require.GreaterOrEqual(t, left, 300*ms)
		require.Less(t, left, 1300*ms)
	case d.caps.Timers:
		require.GreaterOrEqual(t, left, d.caps.Lead)
		require.Less(t, left, levels.MaxTimerHold)
	default:
		require.GreaterOrEqual(t, left, d.caps.Lead)
		require.Less(t, left, d.caps.Lead+d.slack)
		require.LessOrEqual(t, left, levels.MaxLevelHold)
	}
}

// A relay that polls at least every half slack meets a window for every task
// that it saw in time.
func TestPollingMeetsAWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plan := drawPlan(t)
		remaining := plan.drawRemaining(t)
		answer := plan.At(remaining)
		if answer.Kind != levels.Wait {
			return
		}
		late := between(0, plan.slack-1).Draw(t, "late")
		require.Equal(t, levels.Answer{Kind: levels.Send, Level: answer.Level}, plan.At(remaining-answer.Wait-late))
	})
}

func FuzzPlan(f *testing.F) {
	f.Add(int64(time.Second), int64(5*time.Second), int64(0), int64(lead), int64(levels.DefaultSlack), int64(25*time.Minute), false)
	f.Add(int64(730*ms), int64(time.Hour), int64(0), int64(0), int64(1), int64(math.MaxInt64), false)
	f.Add(int64(0), int64(0), int64(2*time.Hour), int64(lead), int64(levels.DefaultSlack), int64(90*time.Minute), true)
	f.Add(int64(0), int64(-1), int64(-1), int64(-1), int64(-1), int64(math.MinInt64), true)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(0), false)
	f.Fuzz(func(t *testing.T, first, second, horizon, lead, slack, remaining int64, timers bool) {
		d := drawn{slack: time.Duration(slack), caps: bide.Capabilities{
			Timers: timers, Horizon: time.Duration(horizon), Lead: time.Duration(lead), Window: 1,
		}}
		if !timers {
			d.caps.Delays = []time.Duration{time.Duration(first), time.Duration(second)}
		}
		var err error
		if d.Plan, err = levels.NewPlan(d.caps, d.slack); err != nil {
			return
		}
		d.requireOneAnswer(t, time.Duration(remaining))
		for _, w := range d.Windows() {
			for _, r := range []time.Duration{w.From, w.From + (w.To-w.From)/2, w.To - 1} {
				d.requireOnTime(t, time.UnixMicro(1772366400123456), r)
			}
		}
	})
}
