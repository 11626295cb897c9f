package rocket

import (
	"context"
	"maps"
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
	seen  map[place]int64 // where the next message after the last one is
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
	return &handover{s: s, ends: map[place]int64{}, seen: map[place]int64{}, first: make(chan struct{})}
}

// allocate is the library's strategy among the living, with a look at the
// outcome. The library calls it before it fetches from a queue that is new.
func (h *handover) allocate(group, client string, all []*primitive.MessageQueue, clients []string) []*primitive.MessageQueue {
	mine := consumer.AllocateByAveragely(group, client, all, living(clients))
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
	maps.DeleteFunc(h.seen, func(p place, _ int64) bool { _, mine := ends[p]; return !mine })
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

// see notes a message and reports whether it was in its queue when that came
// here. What the library sent back, after 15 minutes in hand, comes from another
// topic's queue.
func (h *handover) see(m *primitive.MessageExt) (before bool) {
	if m.Queue.Topic != h.s.cfg.Topic() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := placeOf(m.Queue)
	end, mine := h.ends[p]
	if mine {
		h.seen[p] = max(h.seen[p], m.QueueOffset+1)
	}
	return m.QueueOffset < end
}

// told reports whether the brokers know that all that was seen is acknowledged.
func (h *handover) told(ctx context.Context) bool {
	h.mu.Lock()
	seen := maps.Clone(h.seen)
	h.mu.Unlock()
	for _, l := range h.s.links {
		for p, next := range seen {
			if p.broker != l.broker.Name {
				continue
			}
			at, err := l.conn.Position(ctx, h.s.cfg.Group(), h.s.cfg.Topic(), p.queue)
			if err != nil || at < next {
				return false
			}
		}
	}
	return true
}
