package rabbit

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

// pending is a message that was written and is not confirmed yet.
type pending struct {
	confirm *amqp.DeferredConfirmation
	batch   *batch
	index   int
	id      string
	probe   bool
	at      time.Time
}

// settle is the settler's loop. It ends after the writer has, when the closed
// channel has resolved every confirmation.
func (l *lane) settle() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for p := range l.inflight {
		if !p.probe {
			l.head.Store(&p.at)
		}
		timer.Reset(time.Until(p.at.Add(l.s.cfg.ConfirmTimeout)))
		select {
		case <-p.confirm.Done():
			p.batch.settle(p.index, l.outcome(p))
			<-l.slots
		case <-timer.C:
			l.overdue(p)
		}
		l.head.Store(nil)
	}
}

// overdue settles a message that the broker has not confirmed in time, and
// keeps its slot until it does. The session ends with it, because a queue that
// does not answer takes its connection down sooner or later, except in two
// cases: a blocked connection will answer when it is unblocked, and a probe is
// sent to find out about one level and must not disturb the others.
func (l *lane) overdue(p pending) {
	err := l.timeout()
	p.batch.settle(p.index, bide.Outcome{Status: bide.Unknown, Err: err})
	l.late.Add(1)
	l.s.tasks.Go(func() {
		<-p.confirm.Done()
		l.late.Add(-1)
		<-l.slots
	})
	if l.s.blocked.Load() == nil && !p.probe {
		l.timedOut.Store(true)
		l.s.fail(err)
	}
}

// timeout is the reason for a missing confirm: the level's when the rest of
// the session answers, the session's when it does not.
func (l *lane) timeout() error {
	if reason := l.s.blocked.Load(); reason != nil {
		return blockedError(*reason)
	}
	if l.s.mute() {
		return errMute
	}
	return fmt.Errorf("%w: queue %s, %s", bide.ErrConfirmTimeout, l.queue, l.s.cfg.ConfirmTimeout)
}

// outcome reads a resolved confirmation. The library resolves what is left as
// not acknowledged when the channel closes, but marks the channel closed
// first: a negative answer on an open channel is the broker's own.
func (l *lane) outcome(p pending) bide.Outcome {
	switch {
	case p.confirm.Acked() && l.wasReturned(p.id):
		l.missing()
		return bide.Outcome{Status: bide.Refused, Err: fmt.Errorf("%w: queue %s is missing", bide.ErrUnroutable, l.queue)}
	case p.confirm.Acked():
		return bide.Outcome{Status: bide.Confirmed}
	case l.timedOut.Load():
		return bide.Outcome{Status: bide.Unknown, Err: l.timeout()}
	case l.ch.IsClosed():
		<-l.s.done
		return bide.Outcome{Status: bide.Unknown, Err: l.s.err}
	default:
		return bide.Outcome{Status: bide.Refused, Err: fmt.Errorf("%w: queue %s", bide.ErrRefused, l.queue)}
	}
}

// wasReturned reports whether the broker has returned a message with this id.
// The broker acknowledges what it returns, after the return. Copies of one
// message are interchangeable, so counting them by id is enough.
func (l *lane) wasReturned(id string) bool {
	for {
		select {
		case r, open := <-l.returns:
			if open {
				l.returned[r.MessageId]++
				continue
			}
			l.returns = nil // closed with the channel
			continue
		default:
		}
		break
	}
	if l.returned[id] == 0 {
		return false
	}
	if l.returned[id]--; l.returned[id] == 0 {
		delete(l.returned, id)
	}
	return true
}
