package levels_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
)

const (
	ms   = time.Millisecond
	lead = 50 * ms
)

// fixed are the capabilities of a broker with the given delays.
func fixed(delays ...time.Duration) bide.Capabilities {
	return bide.Capabilities{Delays: delays, Lead: lead, Window: 256}
}

// timers are the capabilities of a broker with timers.
func timers(horizon time.Duration) bide.Capabilities {
	return bide.Capabilities{Timers: true, Horizon: horizon, Lead: lead, Window: 256}
}

// rabbit are the capabilities that the RabbitMQ driver would have by default.
func rabbit(t testing.TB) bide.Capabilities {
	t.Helper()
	ttls, err := levels.RabbitMQ().Less(lead + levels.DefaultSlack)
	require.NoError(t, err)
	return fixed(ttls...)
}

func newPlan(t testing.TB, caps bide.Capabilities) levels.Plan {
	t.Helper()
	plan, err := levels.NewPlan(caps, levels.DefaultSlack)
	require.NoError(t, err)
	return plan
}

func TestWindowsOfFixedDelays(t *testing.T) {
	t.Parallel()
	require.Equal(t, []levels.Window{
		{Level: bide.LevelNone, From: 50 * ms, To: 300 * ms},
		{Level: 1, From: 1050 * ms, To: 1300 * ms},
		{Level: 2, From: 5050 * ms, To: 5300 * ms},
	}, newPlan(t, fixed(time.Second, 5*time.Second)).Windows())
}

func TestWindowsOfTimers(t *testing.T) {
	t.Parallel()
	require.Equal(t, []levels.Window{
		{Level: bide.LevelNone, From: 50 * ms, To: 1500 * ms},
		{Level: bide.LevelTimer, From: 1500 * ms, To: 2 * time.Hour},
	}, newPlan(t, timers(2*time.Hour)).Windows())
}

func TestWindowsOfShortenedTiersEndAtTheNominalDelay(t *testing.T) {
	t.Parallel()
	windows := newPlan(t, rabbit(t)).Windows()
	for i, nominal := range levels.RabbitMQ() {
		require.Equal(t, levels.Window{Level: i + 1, From: nominal - levels.DefaultSlack, To: nominal}, windows[i+1])
	}
}

func TestPlanIsNotItsCallersToChange(t *testing.T) {
	t.Parallel()
	caps := fixed(time.Second, time.Minute)
	plan := newPlan(t, caps)
	caps.Delays[0] = time.Hour
	plan.Windows()[0].From = time.Hour
	require.Equal(t, newPlan(t, fixed(time.Second, time.Minute)), plan)
}

func TestAt(t *testing.T) {
	t.Parallel()
	type answer = levels.Answer
	levelled := newPlan(t, fixed(time.Second, 5*time.Second))
	timed := newPlan(t, timers(time.Hour))
	for name, tt := range map[string]struct {
		plan      levels.Plan
		remaining time.Duration
		want      answer
	}{
		"long overdue":             {levelled, math.MinInt64, answer{Kind: levels.Sweep}},
		"due":                      {levelled, 0, answer{Kind: levels.Sweep}},
		"nearer than lead":         {levelled, lead - 1, answer{Kind: levels.Sweep}},
		"lower edge of none":       {levelled, lead, answer{Kind: levels.Send}},
		"within none":              {levelled, 299 * ms, answer{Kind: levels.Send}},
		"upper edge of none":       {levelled, 300 * ms, answer{Kind: levels.Wait, Wait: 1}},
		"between none and 1":       {levelled, 1050*ms - 1, answer{Kind: levels.Wait, Wait: 750 * ms}},
		"lower edge of 1":          {levelled, 1050 * ms, answer{Kind: levels.Send, Level: 1}},
		"upper edge of 1":          {levelled, 1300 * ms, answer{Kind: levels.Wait, Level: 1, Wait: 1}},
		"between 1 and 2":          {levelled, 5 * time.Second, answer{Kind: levels.Wait, Level: 1, Wait: 3700*ms + 1}},
		"within 2":                 {levelled, 5100 * ms, answer{Kind: levels.Send, Level: 2}},
		"beyond the greatest":      {levelled, time.Hour, answer{Kind: levels.Wait, Level: 2, Wait: time.Hour - 5300*ms + 1}},
		"as far as time reaches":   {levelled, math.MaxInt64, answer{Kind: levels.Wait, Level: 2, Wait: math.MaxInt64 - 5300*ms + 1}},
		"timers, overdue":          {timed, -1, answer{Kind: levels.Sweep}},
		"timers, near":             {timed, 1500*ms - 1, answer{Kind: levels.Send, Level: bide.LevelNone}},
		"timers, far":              {timed, 1500 * ms, answer{Kind: levels.Send, Level: bide.LevelTimer}},
		"timers, below horizon":    {timed, time.Hour - 1, answer{Kind: levels.Send, Level: bide.LevelTimer}},
		"timers, beyond horizon":   {timed, 2 * time.Hour, answer{Kind: levels.Wait, Level: bide.LevelTimer, Wait: time.Hour + 1}},
		"no broker, due in a year": {levels.Plan{}, 8760 * time.Hour, answer{Kind: levels.Sweep}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.plan.At(tt.remaining))
		})
	}
}

func TestDeliverAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	plan := newPlan(t, fixed(time.Second, time.Minute))
	require.Equal(t, now, plan.DeliverAt(bide.LevelNone, now.Add(lead), now))
	require.Equal(t, now.Add(time.Minute), plan.DeliverAt(2, now.Add(time.Minute+lead), now))
	require.Equal(t, now, plan.DeliverAt(3, now.Add(time.Hour), now), "unknown level")

	plan = newPlan(t, timers(time.Hour))
	for runAt, want := range map[time.Duration]time.Duration{
		2 * time.Second:         time.Second,
		2300*ms - 1:             time.Second,
		2300 * ms:               2 * time.Second,
		2999 * ms:               2 * time.Second,
		10*time.Minute + 100*ms: 10*time.Minute - time.Second,
	} {
		require.Equal(t, now.Add(want), plan.DeliverAt(bide.LevelTimer, now.Add(runAt), now), "due in %s", runAt)
	}
}

func TestNewPlanRefuses(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, tt := range map[string]struct {
		caps  bide.Capabilities
		slack time.Duration
		want  []string
	}{
		"nothing at all": {bide.Capabilities{}, 0, []string{
			"publish window 0: want more than 0 messages",
			"slack 0s: want more than 0",
			"neither timers nor fixed delays: want one of the two",
		}},
		"timers and delays": {
			bide.Capabilities{Delays: []time.Duration{second}, Timers: true, Horizon: time.Hour, Window: 1},
			second,
			[]string{"timers and 1 fixed delays: want one of the two"},
		},
		"negative lead": {
			bide.Capabilities{Delays: []time.Duration{second}, Lead: -1, Window: 1},
			100 * ms,
			[]string{"lead -1ns: want 0 or more"},
		},
		"held too long at a level": {
			fixed(10 * second), 451 * ms,
			[]string{"lead 50ms and slack 451ms: want at most 500ms together, the longest a worker holds"},
		},
		"held too long with timers": {
			timers(time.Hour), 1451 * ms,
			[]string{"lead 50ms and slack 1.451s: want at most 1.5s together, the longest a worker holds"},
		},
		"lead that overflows with slack": {
			bide.Capabilities{Timers: true, Horizon: time.Hour, Lead: math.MaxInt64, Window: 1},
			math.MaxInt64,
			[]string{
				"lead 2562047h47m16.854775807s and slack 2562047h47m16.854775807s: want at most 1.5s together, the longest a worker holds",
				"horizon 1h0m0s: want at least slack (2562047h47m16.854775807s) above 1.5s, since nearer tasks go undelayed",
			},
		},
		"no horizon": {
			timers(0), 250 * ms,
			[]string{"horizon 0s: want at least slack (250ms) above 1.5s, since nearer tasks go undelayed"},
		},
		"horizon within slack": {
			timers(1749 * ms), 250 * ms,
			[]string{"horizon 1.749s: want at least slack (250ms) above 1.5s, since nearer tasks go undelayed"},
		},
		"faulty delays": {
			fixed(0, -second, second, 2*second, 2*second, second, 3*second, math.MaxInt64), 250 * ms,
			[]string{
				"level 1 (0s): want more than 0",
				"level 2 (-1s): want more than 0",
				"level 5 (2s): want more than level 4 (2s)",
				"level 6 (1s): want more than level 4 (2s)",
				"level 8 (2562047h47m16.854775807s): too long to add lead and slack",
			},
		},
		"delays nearer than slack": {
			fixed(250*ms, second, 1250*ms), 250 * ms,
			[]string{
				"level 1 (250ms): want more than slack (250ms) above level 0 (0s)",
				"level 3 (1.25s): want more than slack (250ms) above level 2 (1s)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := levels.NewPlan(tt.caps, tt.slack)
			require.EqualError(t, err, strings.Join(tt.want, "\n"))
			require.Zero(t, plan)
		})
	}
}

func TestNewPlanTakesTheBounds(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]bide.Capabilities{
		"least gap":     fixed(450*ms+1, 900*ms+2),
		"longest delay": fixed(math.MaxInt64 - levels.MaxLevelHold),
		"least horizon": timers(levels.MaxTimerHold + 450*ms),
	} {
		_, err := levels.NewPlan(caps, 450*ms)
		require.NoError(t, err, name)
	}
}

func TestAtDoesNotAllocate(t *testing.T) {
	plan := newPlan(t, fixed(levels.RocketMQ()...))
	require.Zero(t, testing.AllocsPerRun(100, func() { plan.At(25 * time.Minute) }))
}

func BenchmarkAt(b *testing.B) {
	plan := newPlan(b, fixed(levels.RocketMQ()...))
	b.ReportAllocs()
	var remaining time.Duration
	for b.Loop() {
		plan.At(remaining)
		remaining = (remaining + 7*time.Second) % (3 * time.Hour)
	}
}
