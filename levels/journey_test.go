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

func TestDescribe(t *testing.T) {
	t.Parallel()
	const second, minute, hour = time.Second, time.Minute, time.Hour
	rocket := newPlan(t, fixed(levels.RocketMQ()...))
	rabbit := newPlan(t, rabbit(t))
	timed := newPlan(t, timers(2*hour))
	for name, tt := range map[string]struct {
		plan  levels.Plan
		table levels.Table
		delay time.Duration
		want  levels.Journey
	}{
		"25 min in RocketMQ's table": {rocket, levels.RocketMQ(), 25 * minute, levels.Journey{
			Kind: levels.Send, Wait: 5*minute - 300*ms, Level: 15,
			Broker:  levels.Range{Min: 20 * minute, Max: 20 * minute},
			Hold:    levels.Range{Max: 250 * ms},
			Arrival: levels.Range{Min: 25*minute - 250*ms, Max: 25 * minute},
			Rounded: levels.Rounding{Nominal: 30 * minute, Late: 5 * minute},
		}},
		"a level's own delay in RocketMQ's table": {rocket, levels.RocketMQ(), 30 * minute, levels.Journey{
			Kind: levels.Send, Wait: 10*minute - 300*ms, Level: 15,
			Broker:  levels.Range{Min: 20 * minute, Max: 20 * minute},
			Hold:    levels.Range{Max: 250 * ms},
			Arrival: levels.Range{Min: 30*minute - 250*ms, Max: 30 * minute},
			Rounded: levels.Rounding{Nominal: 30 * minute},
		}},
		"within a window": {rocket, levels.RocketMQ(), minute + 100*ms, levels.Journey{
			Kind: levels.Send, Level: 5,
			Broker:  levels.Range{Min: minute, Max: minute},
			Hold:    levels.Range{Max: 50 * ms},
			Arrival: levels.Range{Min: minute + 50*ms, Max: minute + 100*ms},
			Rounded: levels.Rounding{Nominal: 2 * minute, Late: minute - 100*ms},
		}},
		"a tier's own delay": {rabbit, levels.RabbitMQ(), 30 * minute, levels.Journey{
			Kind: levels.Send, Level: 5,
			Broker:  levels.Range{Min: 30*minute - 300*ms, Max: 30*minute - 300*ms},
			Hold:    levels.Range{Max: 250 * ms},
			Arrival: levels.Range{Min: 30*minute - 250*ms, Max: 30 * minute},
			Rounded: levels.Rounding{Nominal: 30 * minute},
		}},
		"beyond the greatest tier": {rabbit, levels.RabbitMQ(), 24 * hour, levels.Journey{
			Kind: levels.Send, Wait: 22 * hour, Level: 6,
			Broker:  levels.Range{Min: 2*hour - 300*ms, Max: 2*hour - 300*ms},
			Hold:    levels.Range{Max: 250 * ms},
			Arrival: levels.Range{Min: 24*hour - 250*ms, Max: 24 * hour},
		}},
		"nearer than the least tier": {rabbit, levels.RabbitMQ(), 700 * ms, levels.Journey{
			Kind: levels.Send, Wait: 400 * ms, Level: bide.LevelNone,
			Hold:    levels.Range{Max: 250 * ms},
			Arrival: levels.Range{Min: 450 * ms, Max: 700 * ms},
			Rounded: levels.Rounding{Nominal: second, Late: 300 * ms},
		}},
		"nearer than lead": {rabbit, levels.RabbitMQ(), 10 * ms, levels.Journey{
			Rounded: levels.Rounding{Nominal: second, Late: 990 * ms},
		}},
		"a timer": {timed, nil, 25 * minute, levels.Journey{
			Kind: levels.Send, Level: bide.LevelTimer,
			Broker:  levels.Range{Min: 25*minute - 1300*ms, Max: 25*minute - 300*ms},
			Hold:    levels.Range{Min: 250 * ms, Max: 1250 * ms},
			Arrival: levels.Range{Min: 25*minute - 1250*ms, Max: 25*minute - 250*ms},
		}},
		"beyond the horizon": {timed, levels.RocketMQ(), 3 * hour, levels.Journey{
			Kind: levels.Send, Wait: hour, Level: bide.LevelTimer,
			Broker:  levels.Range{Min: 2*hour - 1300*ms, Max: 2*hour - 300*ms},
			Hold:    levels.Range{Min: 250 * ms, Max: 1250 * ms},
			Arrival: levels.Range{Min: 3*hour - 1250*ms, Max: 3*hour - 250*ms},
		}},
		"too near for a timer": {timed, levels.RocketMQ(), second, levels.Journey{
			Kind: levels.Send, Level: bide.LevelNone,
			Hold:    levels.Range{Max: 950 * ms},
			Arrival: levels.Range{Min: 50 * ms, Max: second},
			Rounded: levels.Rounding{Nominal: second},
		}},
		"without a broker": {levels.Plan{}, nil, hour, levels.Journey{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.Delay = tt.delay
			require.Equal(t, tt.want, tt.plan.Describe(tt.delay, tt.table))
		})
	}
}

// The story told to people is the one that the relay follows.
func TestDescribeAgreesWithAt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plan := drawPlan(t)
		delay := between(math.MinInt64, math.MaxInt64).Draw(t, "delay")
		if rapid.Bool().Draw(t, "near a window") {
			delay = plan.drawRemaining(t)
		}
		answer, j := plan.At(delay), plan.Describe(delay, plan.caps.Delays)
		if answer.Kind == levels.Sweep {
			require.Equal(t, levels.Journey{Delay: delay, Rounded: j.Rounded}, j)
			return
		}
		require.Equal(t, levels.Send, j.Kind)
		require.Equal(t, answer.Level, j.Level)
		require.Equal(t, max(0, answer.Wait-1), j.Wait)
		require.LessOrEqual(t, j.Arrival.Min, j.Arrival.Max)
		require.LessOrEqual(t, j.Arrival.Max, delay, "never late by the plan")
		require.LessOrEqual(t, delay-j.Arrival.Min, levels.MaxTimerHold)
		require.Equal(t, levels.Range{Min: delay - j.Arrival.Max, Max: delay - j.Arrival.Min}, j.Hold)
	})
}

func TestKindsByName(t *testing.T) {
	t.Parallel()
	require.Equal(t, "sweep wait send", levels.Sweep.String()+" "+levels.Wait.String()+" "+levels.Send.String())
}
