package brokertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/bide-mq/bide"
)

// Fault is what goes wrong with one send.
type Fault uint8

const (
	// NoFault passes the send on.
	NoFault Fault = iota
	// Refuse: the broker says no.
	Refuse
	// LoseRequest: the broker never sees it, and nobody knows.
	LoseRequest
	// LoseAnswer: the broker has it, and nobody knows.
	LoseAnswer
	// LoseMessage: the broker confirms it and loses it.
	LoseMessage
	// Duplicate: the broker has it twice.
	Duplicate
	// TimeOut: its level does not confirm.
	TimeOut
)

// FaultyPublisher puts faults between a loop and a driver.
type FaultyPublisher struct {
	bide.Publisher
	// Fault says what happens to a send. It is called from any goroutine.
	Fault func(bide.Send) Fault
}

// Publish passes on what no fault keeps from the broker.
func (p *FaultyPublisher) Publish(ctx context.Context, sends []bide.Send) []bide.Outcome {
	outcomes := make([]bide.Outcome, len(sends))
	faults := make([]Fault, len(sends))
	var passed []bide.Send
	var origin []int
	for i, s := range sends {
		faults[i] = p.Fault(s)
		outcomes[i] = faults[i].outcome()
		for range faults[i].copies() {
			passed, origin = append(passed, s), append(origin, i)
		}
	}
	for n, o := range p.Publisher.Publish(ctx, passed) {
		if i := origin[n]; faults[i] != LoseAnswer {
			outcomes[i] = o
		}
	}
	return outcomes
}

// copies is how many reach the broker.
func (f Fault) copies() int {
	switch f {
	case NoFault, LoseAnswer:
		return 1
	case Duplicate:
		return 2
	default:
		return 0
	}
}

// outcome is what the caller is told of a send that the driver's own outcome
// does not decide.
func (f Fault) outcome() bide.Outcome {
	switch f {
	case Refuse:
		return bide.Outcome{Status: bide.Refused, Err: fmt.Errorf("injected: %w", bide.ErrRefused)}
	case LoseMessage:
		return bide.Outcome{Status: bide.Confirmed}
	case TimeOut:
		return bide.Outcome{Status: bide.Unknown, Err: fmt.Errorf("injected: %w", bide.ErrConfirmTimeout)}
	default:
		return bide.Outcome{Status: bide.Unknown, Err: fmt.Errorf("injected: %w", bide.ErrSessionDown)}
	}
}

// Sometimes returns a Fault function that draws one of the faults with the
// chance given, and no fault otherwise, the same ones for the same seed and
// order of calls.
func Sometimes(seed uint64, chance float64, faults ...Fault) func(bide.Send) Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	return func(bide.Send) Fault {
		mu.Lock()
		defer mu.Unlock()
		if random.Float64() >= chance {
			return NoFault
		}
		return faults[random.IntN(len(faults))]
	}
}
