package levels

import (
	"time"

	"github.com/bide-mq/bide"
)

// Range is a duration known only within bounds, both inclusive.
type Range struct{ Min, Max time.Duration }

// Journey is how a task travels that is scheduled with some delay, for people
// to read. Unless Kind is Send, the fields from Wait to Arrival are zero.
type Journey struct {
	Delay time.Duration
	// Kind is Send, or Sweep for a delay that no message is quick enough for.
	Kind Kind
	// Wait is the time in the ledger, until the window opens.
	Wait time.Duration
	// Level is the one that the task is handed over at.
	Level int
	// Broker is the time in the broker, without its lag. It is exact for fixed
	// delays; for timers it depends on where the due time lies in its second.
	Broker Range
	// Hold is the time in the worker's memory, given the broker's usual lag.
	Hold Range
	// Arrival is when the message reaches a worker, after scheduling, given
	// the broker's usual lag.
	Arrival Range
	// Rounded is what rounding up would have done instead.
	Rounded Rounding
}

// Rounding is a delay rounded up to the least level that is long enough.
type Rounding struct {
	// Nominal is that level's delay; 0 when no level is long enough.
	Nominal time.Duration
	// Late is how long after its due time the task would have fired.
	Late time.Duration
}

// Describe tells how a task scheduled with a delay would travel. Nominal is the
// table that a plain user of the broker would round up in: the broker's levels
// before anything was taken off them. An empty one leaves Rounded zero.
func (p Plan) Describe(delay time.Duration, nominal Table) Journey {
	j := Journey{Delay: delay, Rounded: round(delay, nominal)}
	w, ok := p.next(delay)
	if !ok {
		return j
	}
	// Remaining time at the hand-over lies between w.From and left.
	left := min(delay, w.To)
	j.Kind, j.Level, j.Wait = Send, w.Level, delay-left
	if w.Level == bide.LevelTimer {
		j.Broker = Range{left - timerMargin - time.Second, left - timerMargin}
		j.Hold = Range{max(0, timerMargin-p.lead), max(0, timerMargin+time.Second-p.lead)}
	} else {
		d := p.delay(w.Level)
		j.Broker = Range{d, d}
		j.Hold = Range{0, left - d - p.lead}
	}
	j.Arrival = Range{delay - j.Hold.Max, delay - j.Hold.Min}
	return j
}

func round(delay time.Duration, nominal Table) Rounding {
	up := nominal.up(delay)
	if up == 0 {
		return Rounding{}
	}
	return Rounding{Nominal: up, Late: up - delay}
}
