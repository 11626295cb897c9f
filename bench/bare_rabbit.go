package main

import (
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// bareTTL is the time to live of the bare delay queue.
const bareTTL = 5 * time.Second

// bareRabbit measures a plain delay queue: publish, expire, dead-letter,
// consume. A message is due a time to live after it was sent.
func (o options) bareRabbit(ctx context.Context) ([]figure, error) {
	conn, err := amqp.Dial(os.Getenv("BIDE_RABBITMQ_URL"))
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // measured by then
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	delay, ready, err := o.bareQueues(ch)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, _ = ch.QueueDelete(delay, false, false, false)
		_, _ = ch.QueueDelete(ready, false, false, false)
	}()
	var b bare
	if err := consumeBareRabbit(conn, ready, &b); err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	var one sync.Mutex // a channel has one writer at a time
	send := func(time.Time) error {
		due := time.Now().Add(bareTTL)
		one.Lock()
		confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", delay, true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Body: strconv.AppendInt(nil, due.UnixMicro(), 10),
		})
		one.Unlock()
		if err != nil {
			return err
		}
		_, err = confirm.WaitContext(ctx)
		return err
	}
	if err := paced(ctx, o.rate, time.Duration(o.seconds)*time.Second, send); err != nil {
		return nil, err
	}
	err = poll(ctx, time.Minute, "the bare messages", func() (bool, error) { return b.count() >= o.rate*o.seconds, nil })
	return b.figures("bare"), err
}

// bareQueues declares the delay queue and the one it empties into.
func (o options) bareQueues(ch *amqp.Channel) (delay, ready string, err error) {
	suffix := strconv.FormatInt(time.Now().UnixNano(), 36)
	delay, ready = "bare.delay."+suffix, "bare.ready."+suffix
	args := amqp.Table{
		"x-queue-type": o.queueType, "x-message-ttl": bareTTL.Milliseconds(),
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": ready,
	}
	if o.queueType == "quorum" {
		args["x-dead-letter-strategy"], args["x-overflow"] = "at-least-once", "reject-publish"
	}
	if _, err = ch.QueueDeclare(ready, true, false, false, false, amqp.Table{"x-queue-type": o.queueType}); err != nil {
		return "", "", err
	}
	_, err = ch.QueueDeclare(delay, true, false, false, false, args)
	return delay, ready, err
}

func consumeBareRabbit(conn *amqp.Connection, queue string, b *bare) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(2000, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	go func() {
		for d := range deliveries {
			if due, err := strconv.ParseInt(string(d.Body), 10, 64); err == nil {
				b.arrived(time.UnixMicro(due))
			}
			_ = d.Ack(false) // the queue is deleted at the end
		}
	}()
	return nil
}
