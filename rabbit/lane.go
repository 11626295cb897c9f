package rabbit

import (
	"fmt"
	"sync"
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

	slots    chan struct{} // one taken per unconfirmed message
	inflight chan pending

	mu     sync.Mutex
	jobs   []job
	closed bool
	wake   chan struct{}

	writing  atomic.Pointer[time.Time] // when the write in progress began
	head     atomic.Pointer[time.Time] // when the oldest unconfirmed was written
	late     atomic.Int32              // unconfirmed after the confirm timeout
	timedOut atomic.Bool
	returned map[string]int // the settler's
}

// job is the part of a batch that goes to one lane.
type job struct {
	batch *batch
	sends []int
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
		wake:     make(chan struct{}, 1),
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
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.jobs = append(l.jobs, j)
	}
	l.mu.Unlock()
	if closed {
		j.refuse(l.s.err)
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// pop returns the next job, or false when the session has ended and no job can
// be pushed any more.
func (l *lane) pop() (job, bool) {
	for {
		l.mu.Lock()
		if len(l.jobs) > 0 {
			j := l.jobs[0]
			l.jobs = l.jobs[1:]
			l.mu.Unlock()
			return j, true
		}
		select {
		case <-l.s.done:
			l.closed = true
			l.mu.Unlock()
			return job{}, false
		default:
			l.mu.Unlock()
		}
		select {
		case <-l.s.done:
		case <-l.wake:
		}
	}
}

// write is the writer's loop.
func (l *lane) write() {
	defer close(l.inflight)
	for {
		j, ok := l.pop()
		if !ok {
			return
		}
		for n, i := range j.sends {
			if err := l.room(); err != nil {
				job{j.batch, j.sends[n:]}.refuse(err)
				break
			}
			l.send(j.batch, i)
		}
	}
}

// room waits until one more message may be unconfirmed, no longer than the
// confirm timeout.
func (l *lane) room() error {
	select {
	case <-l.s.done:
		return l.s.err
	default:
	}
	if l.late.Load() > 0 {
		return l.timeout()
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(l.s.cfg.ConfirmTimeout)
	defer timer.Stop()
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-l.s.done:
		return l.s.err
	case <-timer.C:
		return l.timeout()
	}
}

// send writes one message; its slot is taken.
func (l *lane) send(b *batch, i int) {
	if !b.begin(i) {
		<-l.slots
		return
	}
	now := time.Now()
	message := b.sends[i].Message
	l.writing.Store(&now)
	confirm, err := l.ch.PublishWithDeferredConfirm("", l.queue, true, false, publishing(message))
	l.writing.Store(nil)
	if err != nil {
		b.settle(i, bide.Outcome{Status: bide.Unknown, Err: translate(err)})
		l.s.fail(translate(err))
		<-l.slots
		return
	}
	l.inflight <- pending{confirm: confirm, batch: b, index: i, id: message.ID(), probe: message.Probe(), at: now}
}

// publishing is the message as it is published: to the broker's disk, and with
// nothing that an earlier hop could have left.
func publishing(m bide.Message) amqp.Publishing {
	return amqp.Publishing{
		AppId:        "bide",
		ContentType:  "text/plain",
		DeliveryMode: amqp.Persistent,
		MessageId:    m.ID(),
		Body:         m.Body(),
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

// idle reports whether nothing is queued or unconfirmed.
func (l *lane) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs) == 0 && len(l.slots) == 0
}

// refuse settles sends that were never written.
func (j job) refuse(err error) {
	for _, i := range j.sends {
		j.batch.settle(i, bide.Outcome{Status: bide.Refused, Err: err})
	}
}
