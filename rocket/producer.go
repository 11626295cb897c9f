package rocket

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"github.com/bide-mq/bide"
)

// newProducer starts a producer of the client library. Retries are the relay's
// business: the library's own come without a pause, and made 713 duplicates of
// 5,351 messages to a mute broker.
func newProducer(cfg Config, s *session) (rocketmq.Producer, error) {
	p, err := rocketmq.NewProducer(
		producer.WithNsResolver(cfg.resolver()),
		producer.WithGroupName(cfg.producerGroup()),
		producer.WithInstanceName(cfg.instance("relay")),
		producer.WithCredentials(cfg.clientCredentials()),
		producer.WithRetry(0),
		producer.WithSendMsgTimeout(cfg.ConfirmTimeout),
		producer.WithQueueSelector(&selector{s: s}),
	)
	if err != nil {
		return nil, fmt.Errorf("make producer: %w", err)
	}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start producer: %w", err)
	}
	return p, nil
}

// selector takes the queues in turn and passes over those of brokers that do
// not answer: the library and the name server believe in a dead broker for up
// to two minutes.
type selector struct {
	s    *session
	turn atomic.Uint64
}

var _ producer.QueueSelector = (*selector)(nil)

// Select implements [producer.QueueSelector].
func (l *selector) Select(_ *primitive.Message, queues []*primitive.MessageQueue, _ string) *primitive.MessageQueue {
	for range queues {
		q := queues[l.turn.Add(1)%uint64(len(queues))]
		if !l.s.dead(q.BrokerName) {
			return q
		}
	}
	return queues[l.turn.Add(1)%uint64(len(queues))]
}

// learnRoute makes the producer look up the topic's route now. Left to the first
// sends, parallel ones fail, since the library shows the route to the others
// before it has the brokers' addresses, and all fail while the name server is
// away. A send that is cancelled beforehand gets as far as connecting. Should
// the library be connected already, a probe travels, which workers acknowledge.
func learnRoute(p rocketmq.Producer, cfg Config) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	probe := bide.Message{Ledger: cfg.Ledger, RunAt: time.UnixMicro(0), DeliverAt: time.UnixMicro(0)}
	_, err := p.SendSync(ctx, primitive.NewMessage(cfg.Topic(), probe.Body()))
	if err != nil && noRoute(err) {
		return fmt.Errorf("%w: %w", bide.ErrSessionDown, err)
	}
	return nil
}
