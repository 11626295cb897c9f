package rabbit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

// consumer consumes one queue on one channel at a time, and again whenever the
// deliveries end under a living session: when the queue was deleted, when an
// acknowledgement took longer than the broker's consumer_timeout, or after a
// channel exception. RabbitMQ 4.3 leaves the channel open in the first two
// cases, and then it is kept: what it delivered can still be acknowledged.
type consumer struct {
	in    *intake
	queue string
	own   bool // the configured delivery queue, to be made again when missing
}

// run consumes until ctx or the session ends, or until the queue, when it is
// not the subscriber's own, is gone.
func (c consumer) run(ctx context.Context) {
	var ch *amqp.Channel
	for attempt := 0; ; attempt++ {
		began := time.Now()
		var err error
		if ch, err = c.consume(ctx, ch); c.ended(ctx) {
			return
		}
		if time.Since(began) > mostBackoff {
			attempt = 0
		}
		if attempt > 0 {
			c.sleep(ctx, backoff(attempt))
		}
		if !c.ensure(ctx) {
			return
		}
		c.in.log.WarnContext(ctx, "consuming again", "queue", c.queue, "err", err)
	}
}

// ended reports whether there is nothing more to consume for.
func (c consumer) ended(ctx context.Context) bool {
	select {
	case <-c.in.s.done:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// ensure makes the queue again on a channel of its own, or reports false when
// a queue of the other type is gone.
func (c consumer) ensure(ctx context.Context) bool {
	conn := c.in.s.conn
	if !c.own {
		there, err := exists(conn, c.queue)
		return there || err != nil
	}
	if err := declareDelivery(ctx, conn, c.in.s.cfg); err != nil {
		c.in.s.fail(err)
		return false
	}
	return true
}

// consume passes deliveries on until they end. When ctx ends it cancels the
// consumer, upon which the library still hands over what had arrived.
func (c consumer) consume(ctx context.Context, ch *amqp.Channel) (*amqp.Channel, error) {
	ch, closes, err := c.open(ch)
	if err != nil {
		return nil, err
	}
	tag := fmt.Sprintf("bide.%d", c.in.tags.Add(1))
	deliveries, err := ch.Consume(c.queue, tag, false, false, false, false, nil)
	if err != nil {
		if isCode(err, amqp.AccessRefused) {
			c.in.s.fail(translateQueue("consume", c.queue, err))
		}
		return ch, err
	}
	if c.own {
		c.in.setConsuming(true)
		defer c.in.setConsuming(false)
	}
	cancelled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cancelled)
		_ = ch.Cancel(tag, false) // fails only with the channel
	})
	for d := range deliveries {
		c.in.pass(ch, d)
	}
	if !stop() {
		<-cancelled // one call at a time on a channel
	}
	select {
	case cause := <-closes:
		return ch, translateClose(cause)
	default:
		return ch, errCancelled
	}
}

// open returns the channel to consume on, a new one if there is none or it was
// closed.
func (c consumer) open(ch *amqp.Channel) (*amqp.Channel, <-chan *amqp.Error, error) {
	if ch == nil || ch.IsClosed() {
		var err error
		if ch, err = c.in.s.conn.Channel(); err != nil {
			return nil, nil, err
		}
		if err := ch.Qos(c.in.s.cfg.Prefetch, 0, false); err != nil {
			return nil, nil, err
		}
	}
	return ch, ch.NotifyClose(make(chan *amqp.Error, 1)), nil
}

func (c consumer) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-c.in.s.done:
	case <-timer.C:
	}
}

// pass hands one delivery over. Its acknowledgement belongs to the channel it
// came on: on any other the same number means another message.
func (in *intake) pass(ch *amqp.Channel, d amqp.Delivery) {
	in.owed.add()
	var acked atomic.Bool
	in.handle(bide.NewDelivery(d.Body, d.Redelivered, func() {
		if !acked.CompareAndSwap(false, true) {
			return // twice would close the channel
		}
		// An error means that the channel has ended; the message comes again.
		_ = ch.Ack(d.DeliveryTag, false)
		in.owed.done()
	}))
}
