package rabbit

import (
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

// lane publishes to one queue over a channel of its own: no level waits for
// another's confirms. Two goroutines live in it. The writer, the only one to
// touch the channel, takes jobs in order and keeps at most the window
// unconfirmed. The settler takes the written messages in the same order and
// waits for the broker's word on each.
type lane struct {
	s       *session
	queue   string
	ch      *amqp.Channel
	returns chan amqp.Return
	// missing is told that the queue is not there.
	missing func()

	jobs     *jobs
	slots    chan struct{} // one taken per unconfirmed message
	inflight chan pending
	writing  atomic.Pointer[time.Time] // when the write in progress began
	head     atomic.Pointer[time.Time] // when the oldest unconfirmed was written
	late     atomic.Int32              // unconfirmed after the confirm timeout
	timedOut atomic.Bool
	returned map[string]int // the settler's
}

// openLane opens a channel in confirm mode on the session.
func openLane(s *session, queue string, missing func()) (*lane, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, translate(err)
	}
	l := &lane{
		s: s, queue: queue, ch: ch, missing: missing,
		// A return precedes its confirm. With room for a whole window the
		// return is in the buffer by the time the confirm is seen, and the
		// reader of the connection never waits.
		returns:  ch.NotifyReturn(make(chan amqp.Return, s.cfg.Window)),
		slots:    make(chan struct{}, s.cfg.Window),
		inflight: make(chan pending, s.cfg.Window),
		jobs:     newJobs(s.done),
		returned: make(map[string]int),
	}
	if err := ch.Confirm(false); err != nil {
		return nil, translate(err)
	}
	closes := ch.NotifyClose(make(chan *amqp.Error, 1))
	s.tasks.Go(func() {
		if cause := <-closes; cause != nil {
			s.fail(fmt.Errorf("%w: publish to %s: %w", bide.ErrSessionDown, queue, cause))
		}
	})
	s.tasks.Go(l.write)
	s.tasks.Go(l.settle)
	return l, nil
}

// push hands a job to the writer and never waits.
func (l *lane) push(j job) {
	if !l.jobs.push(j) {
		j.refuse(l.s.err)
	}
}

// age is how long the oldest unconfirmed message has been so.
func (l *lane) age() time.Duration {
	for _, at := range []*time.Time{l.head.Load(), l.writing.Load()} {
		if at != nil {
			return time.Since(*at)
		}
	}
	return 0
}

// idle reports whether nothing is queued, being written or unconfirmed.
func (l *lane) idle() bool {
	return l.jobs.idle() && len(l.slots) == 0
}
