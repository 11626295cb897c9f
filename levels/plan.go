package levels

import (
	"slices"
	"time"

	"github.com/bide-mq/bide"
)

// DefaultSlack is two polls of a relay and a half, at its 100 ms.
const DefaultSlack = 250 * time.Millisecond

// Bounds of what a worker is made to hold, unacknowledged. A held message
// takes a place in the worker's prefetch that a due one may need: with 6,000
// held and a prefetch of 4,000, RabbitMQ delivered due ones up to 1.8 s late
// at a hold of 1.9 s, and 0.2 s late at 0.3 s.
const (
	// MaxLevelHold bounds lead plus slack where the broker has fixed delays.
	MaxLevelHold = 500 * time.Millisecond
	// MaxTimerHold bounds it where the broker has timers, which tick in
	// seconds. Tasks nearer than this are sent undelayed.
	MaxTimerHold = 1500 * time.Millisecond
)

// timerMargin is how long before the due time a timer is asked to fire, before
// flooring to the second. RocketMQ 5.5 timers arrived up to 274 ms after the
// second they were set to, at 3,000 messages/s.
const timerMargin = 300 * time.Millisecond

// Window is an interval of remaining time, From inclusive and To exclusive, in
// which a task is handed to the broker at Level.
type Window struct {
	// Level is counted from 1, or bide.LevelNone, or bide.LevelTimer.
	Level    int
	From, To time.Duration
}

// Plan says for every remaining time how a task goes on. The zero Plan, which
// suits a service without a broker, leaves everything to the sweep.
type Plan struct {
	delays  []time.Duration
	lead    time.Duration
	windows []Window
}

// NewPlan makes the plan for a broker. Slack is the width of a level's window:
// longer than the relay's poll period, or tasks slip past. The error names
// every fault of the capabilities and of slack.
func NewPlan(caps bide.Capabilities, slack time.Duration) (Plan, error) {
	if err := validate(caps, slack); err != nil {
		return Plan{}, err
	}
	p := Plan{delays: slices.Clone(caps.Delays), lead: caps.Lead}
	if caps.Timers {
		p.windows = []Window{
			{Level: bide.LevelNone, From: caps.Lead, To: MaxTimerHold},
			{Level: bide.LevelTimer, From: MaxTimerHold, To: caps.Horizon},
		}
		return p, nil
	}
	p.windows = append(p.windows, Window{Level: bide.LevelNone, From: caps.Lead, To: caps.Lead + slack})
	for i, d := range caps.Delays {
		p.windows = append(p.windows, Window{Level: i + 1, From: d + caps.Lead, To: d + caps.Lead + slack})
	}
	return p, nil
}

// Windows returns the plan's windows, disjoint and ascending.
func (p Plan) Windows() []Window { return slices.Clone(p.windows) }

// DeliverAt returns when the broker is to deliver a task that is due at runAt
// and handed over at level now. Timers get a whole second between 300 ms and
// 1.3 s before runAt. A level that the plan does not have, which no publisher
// accepts, is answered as bide.LevelNone.
func (p Plan) DeliverAt(level int, runAt, now time.Time) time.Time {
	if level == bide.LevelTimer {
		return runAt.Add(-timerMargin).Truncate(time.Second)
	}
	return now.Add(p.delay(level))
}

// delay returns what the broker waits at a level, 0 where it is not fixed.
func (p Plan) delay(level int) time.Duration {
	if level < 1 || level > len(p.delays) {
		return 0
	}
	return p.delays[level-1]
}
