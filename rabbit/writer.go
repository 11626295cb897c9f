package rabbit

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

// write is the writer's loop.
func (l *lane) write() {
	defer close(l.inflight)
	for {
		j, ok := l.jobs.pop()
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
