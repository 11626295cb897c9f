package bide

import (
	"context"
	"errors"
	"time"
)

// Capabilities is what a driver's broker can do. Exactly one of Delays and
// Timers is set.
type Capabilities struct {
	// Delays holds what the broker waits at each fixed level, ascending:
	// level n waits Delays[n-1].
	Delays []time.Duration
	// Timers says that the broker delivers at an arbitrary time, in whole
	// seconds.
	Timers bool
	// Horizon is the longest delay the broker takes when it has timers.
	Horizon time.Duration
	// Lead is the usual time between the moment the broker was asked to
	// deliver at and the arrival. Tasks are handed over this much early.
	Lead time.Duration
	// Window is the most messages to have unconfirmed at one level.
	Window int
}

// Levels that stand for no fixed delay.
const (
	// LevelNone sends without delay.
	LevelNone = 0
	// LevelTimer asks a broker with timers to deliver at Message.DeliverAt.
	LevelTimer = -1
)

// Send is a message and the way it is to travel: a level of
// [Capabilities].Delays counted from 1, [LevelNone] or [LevelTimer].
type Send struct {
	Message Message
	Level   int
}

// Status is what is known of a publish.
type Status uint8

const (
	// Unknown: the broker may or may not have the message. The zero value,
	// since it is what holds until the broker has spoken.
	Unknown Status = iota
	// Confirmed: the broker has taken responsibility for the message.
	Confirmed
	// Refused: the broker certainly does not have the message.
	Refused
)

func (s Status) String() string {
	switch s {
	case Confirmed:
		return "confirmed"
	case Refused:
		return "refused"
	default:
		return "unknown"
	}
}

// Reasons that an [Outcome] may carry; drivers translate theirs into these.
var (
	// ErrConfirmTimeout: the broker did not answer in time although the
	// session lived. The level is suspect, not the session.
	ErrConfirmTimeout = errors.New("no confirm in time")
	// ErrSessionDown: there was no session, or it ended before the answer.
	ErrSessionDown = errors.New("broker session down")
	// ErrUnroutable: the level's queue or topic is missing.
	ErrUnroutable = errors.New("unroutable")
	// ErrRefused: the broker answered no, for example because a queue is full.
	ErrRefused = errors.New("refused by the broker")
)

// Outcome is what became of one [Send].
type Outcome struct {
	Status Status
	// Err says why the message is not confirmed. It wraps one of the reasons
	// above where one of them applies.
	Err error
}

// Publisher hands messages to a broker.
type Publisher interface {
	// Capabilities says what the broker can do. It does not change.
	Capabilities() Capabilities
	// Publish sends the messages and blocks until the fate of each is known,
	// the driver's confirm timeout is over, or ctx ends. It returns one
	// outcome per send, in order. It is safe for concurrent use.
	Publish(ctx context.Context, sends []Send) []Outcome
	// Session says whether publishing makes sense now.
	Session() Session
}

// SessionState is the condition of a connection to a broker.
type SessionState uint8

const (
	// SessionDown: no usable connection, or one that stopped answering.
	SessionDown SessionState = iota
	// SessionBlocked: connected, but the broker takes no messages for now.
	SessionBlocked
	// SessionUp: connected and answering.
	SessionUp
)

func (s SessionState) String() string {
	switch s {
	case SessionUp:
		return "up"
	case SessionBlocked:
		return "blocked"
	default:
		return "down"
	}
}

// Session is a snapshot of a driver's session.
type Session struct {
	State SessionState
	// Err says why the state is not SessionUp; nil before the first attempt.
	Err error
}
