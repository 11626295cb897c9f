package rabbit

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// queue is a queue's name and arguments.
type queue struct {
	name string
	args amqp.Table
}

// delivery carries no limit of its own: what it drops, the sweep finds.
func (c Config) delivery() queue {
	return queue{c.DeliveryQueue(), amqp.Table{amqp.QueueTypeArg: string(c.QueueType)}}
}

// tiers returns one queue per level. They dead-letter through the default
// exchange straight into the delivery queue: there is no exchange to delete
// and no binding to lose. They never expire: an expiring queue drops what it
// holds.
func (c Config) tiers() ([]queue, error) {
	ttls, err := c.ttls()
	if err != nil {
		return nil, err
	}
	tiers := make([]queue, len(ttls))
	for i, ttl := range ttls {
		tiers[i] = queue{c.tierQueue(ttl), tierArguments(c.QueueType, ttl, c.DeliveryQueue())}
	}
	return tiers, nil
}

func tierArguments(t QueueType, ttl time.Duration, target string) amqp.Table {
	args := amqp.Table{
		amqp.QueueTypeArg: string(t),
		// An int would be written as 32 bits and turn negative after 24.8 days.
		amqp.QueueMessageTTLArg:     ttl.Milliseconds(),
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": target,
	}
	if t == Quorum {
		// At-least-once needs reject-publish; with the default overflow the
		// broker falls back to at-most-once and says so only in its log.
		args["x-dead-letter-strategy"] = "at-least-once"
		args[amqp.QueueOverflowArg] = amqp.QueueOverflowRejectPublish
	}
	return args
}

// declare declares the queues, each on a channel of its own, because a refusal
// closes the channel and a declare between the frames of a publish closes the
// connection. It reports all refusals at once.
func declare(conn *amqp.Connection, queues ...queue) error {
	var faults []error
	for _, q := range queues {
		err := throwaway(conn, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(q.name, true, false, false, false, q.args)
			return err
		})
		if err != nil && conn.IsClosed() {
			return errors.Join(append(faults, translateQueue("declare", q.name, err))...)
		}
		if err != nil {
			faults = append(faults, translateQueue("declare", q.name, err))
		}
	}
	return errors.Join(faults...)
}

// recreateGrace is how long the delivery queue stays missing before it is made
// again. When a quorum queue is deleted, the broker's channels that consume it
// learn of it one by one, and one that finds a queue of that name again takes
// up consuming by itself, without telling its client. Seen on 3.10.8: what that
// consumer is then given is lost on the way, and stays unacknowledged.
const recreateGrace = 500 * time.Millisecond

// declareDelivery makes sure of the delivery queue. That it is missing while
// one of its tiers is there means that it was deleted, since it comes first.
func declareDelivery(ctx context.Context, conn *amqp.Connection, cfg Config) error {
	q := cfg.delivery()
	there, err := exists(conn, q.name)
	if err == nil && !there {
		there, err = exists(conn, cfg.Queues()[1])
		if there {
			sleep(ctx, recreateGrace)
		}
	}
	if err != nil {
		return translate(err)
	}
	return declare(conn, q)
}

// exists reports whether the queue is there.
func exists(conn *amqp.Connection, name string) (bool, error) {
	_, there, err := inspect(conn, name)
	return there, err
}

// inspect looks at a queue.
func inspect(conn *amqp.Connection, name string) (q amqp.Queue, there bool, err error) {
	err = throwaway(conn, func(ch *amqp.Channel) (err error) {
		q, err = ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
	if isCode(err, amqp.NotFound) {
		return q, false, nil
	}
	return q, err == nil, err
}

func throwaway(conn *amqp.Connection, use func(*amqp.Channel) error) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := use(ch); err != nil {
		return err
	}
	return ch.Close()
}
