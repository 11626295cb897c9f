package main

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	rabbitmq "github.com/rabbitmq/amqp091-go"
)

// forwarded measures Watermill's forwarder from PostgreSQL to a quorum queue
// with confirms, in messages per second. It reads 100 rows at a time.
func (b *bench) forwarded(ctx context.Context) (float64, error) {
	db, err := newDatabase(ctx)
	if err != nil {
		return 0, err
	}
	defer db.drop()
	logger := watermill.NopLogger{}
	schema := sql.DefaultPostgreSQLSchema{SubscribeBatchSize: 100}
	outbox, err := sql.NewPublisher(sql.BeginnerFromPgx(db.Pool), sql.PublisherConfig{SchemaAdapter: schema, AutoInitializeSchema: true}, logger)
	if err != nil {
		return 0, err
	}
	inbox, err := sql.NewSubscriber(sql.BeginnerFromPgx(db.Pool), sql.SubscriberConfig{
		SchemaAdapter: schema, OffsetsAdapter: sql.DefaultPostgreSQLOffsetsAdapter{}, InitializeSchema: true, PollInterval: 10 * time.Millisecond,
	}, logger)
	if err != nil {
		return 0, err
	}
	cfg := amqp.NewDurableQueueConfig(os.Getenv("BIDE_RABBITMQ_URL"))
	cfg.Publish.ConfirmDelivery = true
	cfg.Queue.Arguments = rabbitmq.Table{"x-queue-type": "quorum"}
	publisher, err := amqp.NewPublisher(cfg, logger)
	if err != nil {
		return 0, err
	}
	defer publisher.Close() //nolint:errcheck // measured by then
	queue := "bench.forwarded." + strconv.FormatInt(time.Now().UnixNano(), 36)
	defer deleteQueue(queue)
	n := b.messages / 20
	if err := envelop(forwarder.NewPublisher(outbox, forwarder.PublisherConfig{ForwarderTopic: "outbox"}), queue, n); err != nil {
		return 0, err
	}
	counted := &countingPublisher{Publisher: publisher, want: int64(n), done: make(chan struct{})}
	f, err := forwarder.NewForwarder(inbox, counted, logger, forwarder.Config{ForwarderTopic: "outbox"})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- f.Run(context.WithoutCancel(ctx)) }()
	select {
	case <-counted.done:
	case err := <-ended:
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	rate := float64(n) / time.Since(began).Seconds()
	_ = f.Close() // measured by then
	return rate, <-ended
}

// envelop writes messages for the queue into the outbox, 1,000 at a time.
func envelop(p message.Publisher, queue string, n int) error {
	for first := 0; first < n; first += 1000 {
		batch := make([]*message.Message, min(1000, n-first))
		for i := range batch {
			batch[i] = message.NewMessage(watermill.NewUUID(), barePadding)
		}
		if err := p.Publish(queue, batch...); err != nil {
			return err
		}
	}
	return nil
}

func deleteQueue(name string) {
	conn, err := rabbitmq.Dial(os.Getenv("BIDE_RABBITMQ_URL"))
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // nothing to lose
	if ch, err := conn.Channel(); err == nil {
		_, _ = ch.QueueDelete(name, false, false, false)
	}
}

// countingPublisher tells when so many messages are confirmed.
type countingPublisher struct {
	message.Publisher
	count atomic.Int64
	want  int64
	done  chan struct{}
}

// Publish implements [message.Publisher].
func (c *countingPublisher) Publish(topic string, messages ...*message.Message) error {
	if err := c.Publisher.Publish(topic, messages...); err != nil {
		return err
	}
	if c.count.Add(int64(len(messages))) == c.want {
		close(c.done)
	}
	return nil
}
