package rocket

import (
	"fmt"
	"sync"
	"sync/atomic"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
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

// gate lets one caller through at a time until one of them says that the way is
// known. The library fails parallel first sends: it shows the topic's route to
// the others before it has the brokers' addresses.
type gate struct {
	known atomic.Bool
	first sync.Mutex
}

func (g *gate) pass(send func() (known bool)) {
	if g.known.Load() {
		send()
		return
	}
	g.first.Lock()
	defer g.first.Unlock()
	if send() {
		g.known.Store(true)
	}
}
