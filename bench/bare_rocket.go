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
)

// bareLevel is RocketMQ's second level, 5 s: a message sent by it is due then.
const (
	bareLevel      = 2
	bareLevelDelay = 5 * time.Second
)

// bareRocket measures RocketMQ with its own client: timers that are due at any
// millisecond, or else the level of 5 s. The topic is made by the first send.
func (o options) bareRocket(ctx context.Context, timers bool) ([]figure, error) {
	rlog.SetLogLevel("fatal")
	servers := []string{os.Getenv("BIDE_ROCKETMQ_NAME_SERVERS")}
	topic := fmt.Sprintf("bare-%d", time.Now().UnixNano())
	p, err := rocketmq.NewProducer(producer.WithNameServer(servers), producer.WithGroupName(topic+"-p"), producer.WithInstanceName(topic+"-p"))
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	defer p.Shutdown() //nolint:errcheck // measured by then
	if _, err := p.SendSync(ctx, primitive.NewMessage(topic, []byte("0"))); err != nil {
		return nil, err
	}
	var b bare
	c, err := consumeBare(servers, topic, &b)
	if err != nil {
		return nil, err
	}
	defer c.Shutdown() //nolint:errcheck // likewise
	send := func(due time.Time) error {
		m := primitive.NewMessage(topic, nil)
		if timers {
			m.WithDelayTimestamp(due)
		} else {
			due = time.Now().Add(bareLevelDelay)
			m.WithDelayTimeLevel(bareLevel)
		}
		m.Body = strconv.AppendInt(nil, due.UnixMicro(), 10)
		_, err := p.SendSync(ctx, m)
		return err
	}
	if err := paced(ctx, o.rate, time.Duration(o.seconds)*time.Second, send); err != nil {
		return nil, err
	}
	err = poll(ctx, time.Minute, "the bare messages", func() (bool, error) { return b.count() >= o.rate*o.seconds, nil })
	return b.figures("bare"), err
}

func consumeBare(servers []string, topic string, b *bare) (rocketmq.PushConsumer, error) {
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer(servers), consumer.WithGroupName(topic+"-c"), consumer.WithInstance(topic+"-c"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return nil, err
	}
	err = c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			if due, err := strconv.ParseInt(string(m.Body), 10, 64); err == nil && due > 0 {
				b.arrived(time.UnixMicro(due))
			}
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return nil, err
	}
	return c, c.Start()
}
