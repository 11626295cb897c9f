package rocket

import (
	"context"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// handover tells which messages another consumer may have had before. RocketMQ
// marks none: a group's position in a queue only moves on when all before it is
// acknowledged, and the next owner starts there. So what lay in a queue when it
// was given to this consumer counts as delivered before; what comes later does
// not.
type handover struct {
	s *session

	mu    sync.Mutex
	ends  map[place]int64 // of the queues that this consumer has, when it got them
	once  sync.Once
	first chan struct{} // closed after the first assignment
}

// place is one queue of the topic.
type place struct {
	broker string
	queue  int
}

func placeOf(q *primitive.MessageQueue) place { return place{q.BrokerName, q.QueueId} }

func newHandover(s *session) *handover {
	return &handover{s: s, ends: map[place]int64{}, first: make(chan struct{})}
}

// allocate is the library's strategy with a look at the outcome. The library
// calls it before it fetches from a queue that is new.
func (h *handover) allocate(group, client string, all []*primitive.MessageQueue, clients []string) []*primitive.MessageQueue {
	mine := consumer.AllocateByAveragely(group, client, all, clients)
	if len(all) > 0 && all[0].Topic == h.s.cfg.Topic() {
		h.assign(mine)
		h.once.Do(func() { close(h.first) })
	}
	return mine
}

func (h *handover) assign(mine []*primitive.MessageQueue) {
	h.mu.Lock()
	had := h.ends
	h.mu.Unlock()
	ends := make(map[place]int64, len(mine))
	for _, q := range mine {
		p := placeOf(q)
		end, ok := had[p]
		if !ok {
			end = h.end(p)
		}
		ends[p] = end
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = ends
}

// end asks for a queue's end. A broker that does not answer delivers nothing
// either, soon.
func (h *handover) end(p place) int64 {
	for _, l := range h.s.links {
		if l.broker.Name != p.broker {
			continue
		}
		ctx, cancel := context.WithTimeout(h.s.ctx, muteAfter)
		defer cancel()
		if end, err := l.conn.MaxOffset(ctx, h.s.cfg.Topic(), p.queue); err == nil {
			return end
		}
	}
	return 0
}

// before reports whether the message was in its queue when that came here.
func (h *handover) before(m *primitive.MessageExt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return m.QueueOffset < h.ends[placeOf(m.Queue)]
}
