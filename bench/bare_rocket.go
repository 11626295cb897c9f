package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"golang.org/x/sync/errgroup"
)

const (
	bareTimersName = "bare rocketmq timers"
	bareLevelName  = "bare rocketmq level"
	// bareLevel is RocketMQ's second level, 5 s: a message sent by it is due then.
	bareLevel      = 2
	bareLevelDelay = 5 * time.Second
)

// bareRocket is RocketMQ with its own client: timers that are due at any
// millisecond, or the level of 5 s.
type bareRocket struct {
	clock
	levels   bool
	topic    string
	producer rocketmq.Producer
	consumer rocketmq.PushConsumer
}

func (b *bareRocket) name() string {
	if b.levels {
		return bareLevelName
	}
	return bareTimersName
}

// start sends one message, which makes the topic.
func (b *bareRocket) start(ctx context.Context, _ *database) (err error) {
	rlog.SetLogLevel("fatal")
	servers := []string{os.Getenv("BIDE_ROCKETMQ_NAME_SERVERS")}
	b.topic = fmt.Sprintf("bare-%d", time.Now().UnixNano())
	b.producer, err = rocketmq.NewProducer(producer.WithNameServer(servers), producer.WithGroupName(b.topic+"-p"), producer.WithInstanceName(b.topic+"-p"))
	if err != nil {
		return err
	}
	if err := b.producer.Start(); err != nil {
		return err
	}
	if _, err := b.producer.SendSync(ctx, primitive.NewMessage(b.topic, []byte("0"))); err != nil {
		return err
	}
	b.consumer, err = rocketmq.NewPushConsumer(consumer.WithNameServer(servers), consumer.WithGroupName(b.topic+"-c"), consumer.WithInstance(b.topic+"-c"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return err
	}
	err = b.consumer.Subscribe(b.topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			if due, err := strconv.ParseInt(string(m.Body), 10, 64); err == nil && due > 0 {
				b.arrived(time.UnixMicro(due))
			}
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return err
	}
	return b.consumer.Start()
}

// schedule sends from 64 places.
func (b *bareRocket) schedule(ctx context.Context, _ int64, due []time.Time) error {
	var sending errgroup.Group
	sending.SetLimit(64)
	for _, at := range due {
		sending.Go(func() error {
			m := primitive.NewMessage(b.topic, nil)
			if b.levels {
				at = time.Now().Add(bareLevelDelay)
				m.WithDelayTimeLevel(bareLevel)
			} else {
				m.WithDelayTimestamp(at)
			}
			m.Body = strconv.AppendInt(nil, at.UnixMicro(), 10)
			_, err := b.producer.SendSync(ctx, m)
			return err
		})
	}
	return sending.Wait()
}

func (b *bareRocket) stop() {
	_ = b.consumer.Shutdown()
	_ = b.producer.Shutdown() // measured by then
}
