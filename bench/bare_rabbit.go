package main

import (
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	bareRabbitName = "bare rabbitmq ttl"
	// bareTTL is the time to live of the delay queue, which is all that a bare
	// one can do: a message is due a time to live after it was sent.
	bareTTL = 4 * time.Second
	// window is how many messages the raw clients have unconfirmed, per queue,
	// as Bide has.
	window = 256
)

// bareRabbit is a plain delay queue: publish, expire, dead-letter, consume. It
// is also the raw pipeline that throughput is measured against.
type bareRabbit struct {
	clock
	queueType   string
	ttl         time.Duration // bareTTL by default
	conn        *amqp.Connection
	ch          *amqp.Channel
	delay, ends string
	unconfirmed chan *amqp.DeferredConfirmation
	confirming  sync.WaitGroup
}

func (*bareRabbit) name() string { return bareRabbitName }

func (b *bareRabbit) start(context.Context, *database) error {
	var err error
	if b.ttl == 0 {
		b.ttl = bareTTL
	}
	if b.conn, err = amqp.Dial(os.Getenv("BIDE_RABBITMQ_URL")); err != nil {
		return err
	}
	if b.ch, err = b.conn.Channel(); err != nil {
		return err
	}
	if err := b.declare(); err != nil {
		return err
	}
	if err := b.consume(); err != nil {
		return err
	}
	b.unconfirmed = make(chan *amqp.DeferredConfirmation, window)
	b.confirming.Go(func() {
		for c := range b.unconfirmed {
			c.Wait()
		}
	})
	return b.ch.Confirm(false)
}

// declare makes the delay queue and the one it empties into.
func (b *bareRabbit) declare() error {
	suffix := strconv.FormatInt(time.Now().UnixNano(), 36)
	b.delay, b.ends = "bare.delay."+suffix, "bare.ready."+suffix
	args := amqp.Table{
		"x-queue-type": b.queueType, "x-message-ttl": b.ttl.Milliseconds(),
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": b.ends,
	}
	if b.queueType == "quorum" {
		args["x-dead-letter-strategy"], args["x-overflow"] = "at-least-once", "reject-publish"
	}
	if _, err := b.ch.QueueDeclare(b.ends, true, false, false, false, amqp.Table{"x-queue-type": b.queueType}); err != nil {
		return err
	}
	_, err := b.ch.QueueDeclare(b.delay, true, false, false, false, args)
	return err
}

func (b *bareRabbit) consume() error {
	ch, err := b.conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(2000, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(b.ends, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	go func() {
		for d := range deliveries {
			if due, err := strconv.ParseInt(string(d.Body[:bareDigits]), 10, 64); err == nil {
				b.arrived(time.UnixMicro(due))
			}
			_ = d.Ack(false) // the queue is deleted at the end
		}
	}()
	return nil
}

// bareDigits is the length of the due time in a body, which is as long as one of
// Bide's.
const bareDigits = 16

var barePadding = make([]byte, 64)

// schedule publishes with at most a window unconfirmed.
func (b *bareRabbit) schedule(ctx context.Context, _ int64, due []time.Time) error {
	for range due {
		body := strconv.AppendInt(nil, time.Now().Add(b.ttl).UnixMicro(), 10)
		confirm, err := b.ch.PublishWithDeferredConfirmWithContext(ctx, "", b.delay, true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Body: append(body, barePadding...),
		})
		if err != nil {
			return err
		}
		b.unconfirmed <- confirm
	}
	return nil
}

// settle waits for all confirms; nothing may be scheduled afterwards.
func (b *bareRabbit) settle() {
	close(b.unconfirmed)
	b.confirming.Wait()
}

func (b *bareRabbit) stop() {
	_, _ = b.ch.QueueDelete(b.delay, false, false, false)
	_, _ = b.ch.QueueDelete(b.ends, false, false, false)
	_ = b.conn.Close() // measured by then
}
