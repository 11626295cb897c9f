package levels

import (
	"slices"
	"time"
)

// Kind is what to do with a task.
type Kind uint8

const (
	// Sweep leaves the task to the sweep: it is overdue, or due before a
	// message could arrive.
	Sweep Kind = iota
	// Wait leaves the task in the ledger until its remaining time meets a
	// window.
	Wait
	// Send hands the task over now.
	Send
)

func (k Kind) String() string {
	switch k {
	case Send:
		return "send"
	case Wait:
		return "wait"
	default:
		return "sweep"
	}
}

// Answer is how a task goes on.
type Answer struct {
	Kind Kind
	// Level is the level to send at, now or after the wait.
	Level int
	// Wait is the least time after which the task lies in the window of
	// Level, to the nanosecond. 0 unless Kind is Wait.
	Wait time.Duration
}

// At answers for a task whose remaining time, run_at less now, is given. It
// does not allocate.
func (p Plan) At(remaining time.Duration) Answer {
	w, ok := p.next(remaining)
	switch {
	case !ok:
		return Answer{Kind: Sweep}
	case remaining >= w.To:
		// A window excludes its upper edge, hence one nanosecond more.
		return Answer{Kind: Wait, Level: w.Level, Wait: remaining - w.To + 1}
	default:
		return Answer{Kind: Send, Level: w.Level}
	}
}

// next returns the window that a task meets first, the one it is in included.
func (p Plan) next(remaining time.Duration) (Window, bool) {
	for _, w := range slices.Backward(p.windows) {
		if remaining >= w.From {
			return w, true
		}
	}
	return Window{}, false
}
