package rocket

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/bide-mq/bide"
)

// suspectFor is how long the session counts as down after a send that was not
// answered, unless one is answered meanwhile.
const suspectFor = time.Second

// Pauses before a message that a busy broker turned away is sent again. They
// double.
const (
	leastBusyPause = 20 * time.Millisecond
	mostBusyPause  = 200 * time.Millisecond
)

// senders are the places for sends of one session, so many at once and no more.
type senders struct {
	cfg      Config
	facts    Facts
	s        *session
	producer rocketmq.Producer

	free    chan int       // places without a send
	began   []atomic.Int64 // by place: when its send began, in Unix ns; 0 when free
	suspect atomic.Int64   // until when the session is under suspicion, in Unix ns
	drained int            // places that drain has taken for good
}

func newSenders(cfg Config, facts Facts, s *session, producer rocketmq.Producer) *senders {
	n := &senders{
		cfg: cfg, facts: facts, s: s, producer: producer,
		free: make(chan int, cfg.Senders), began: make([]atomic.Int64, cfg.Senders),
	}
	for place := range cfg.Senders {
		n.free <- place
	}
	return n
}

// state adds to what the probes tell what the sends tell.
func (n *senders) state() bide.Session {
	err := n.trouble()
	if err == nil && n.oldest(time.Now()) > muteAfter {
		err = errSlow
	}
	if err != nil {
		return down(err)
	}
	return bide.Session{State: bide.SessionUp}
}

// trouble says why nothing should be sent now.
func (n *senders) trouble() error {
	if err := n.s.err(); err != nil {
		return err
	}
	if n.s.mute() {
		return errMute
	}
	if time.Now().UnixNano() < n.suspect.Load() {
		return errSlow
	}
	return nil
}

// oldest is the age of the send that waits longest.
func (n *senders) oldest(now time.Time) (age time.Duration) {
	for i := range n.began {
		if began := n.began[i].Load(); began != 0 {
			age = max(age, time.Duration(now.UnixNano()-began))
		}
	}
	return age
}

// send brings one message on its way as soon as there is a place, and calls
// report once, now or later.
func (n *senders) send(ctx context.Context, send bide.Send, report func(bide.Outcome)) {
	msg, err := n.message(send)
	if err != nil {
		report(refused(err))
		return
	}
	select {
	case place := <-n.free:
		n.began[place].Store(time.Now().UnixNano())
		if err := n.trouble(); err != nil {
			n.release(place)
			report(refused(err))
			return
		}
		go n.sendAt(ctx, place, msg, report)
	case <-n.s.ctx.Done():
		report(refused(n.s.err()))
	case <-ctx.Done():
		report(refused(context.Cause(ctx)))
	}
}

func (n *senders) release(place int) {
	n.began[place].Store(0)
	n.free <- place
}

var errUnanswered = fmt.Errorf("%w: no answer in time", bide.ErrSessionDown)

// sendAt sends a message from a place, which it gives back when the library has
// returned. That may be long after the report: it holds one lock while it
// dials, whatever the address.
func (n *senders) sendAt(ctx context.Context, place int, msg *primitive.Message, report func(bide.Outcome)) {
	ctx, cancel := n.limit(ctx)
	answered := make(chan bide.Outcome, 1)
	go func() {
		defer n.release(place)
		answered <- n.sendSync(ctx, place, msg)
	}()
	defer cancel()
	select {
	case outcome := <-answered:
		report(n.judge(outcome))
	case <-ctx.Done():
		report(n.judge(bide.Outcome{Err: context.Cause(ctx)}))
	}
}

// limit bounds one send by the confirm timeout and the session.
func (n *senders) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(n.s.ctx, func() { end(n.s.err()) })
	ctx, cancel := context.WithTimeoutCause(ctx, n.cfg.ConfirmTimeout, errUnanswered)
	return ctx, func() { stop(); cancel(); end(nil) }
}

// sendSync sends until the broker is not too busy or ctx ends. A busy broker
// answers, so the send counts as new each time. It does not begin when ctx has
// ended: the library would give the connection a deadline in the past, and
// close it for everyone.
func (n *senders) sendSync(ctx context.Context, place int, msg *primitive.Message) bide.Outcome {
	outcome := refused(context.Cause(ctx))
	for pause := leastBusyPause; ctx.Err() == nil; pause = min(2*pause, mostBusyPause) {
		n.began[place].Store(time.Now().UnixNano())
		result, err := n.producer.SendSync(ctx, msg)
		outcome = outcomeOf(ctx, result, err)
		if !busy(err) || !sleep(ctx, pause) {
			break
		}
	}
	return outcome
}

// judge draws conclusions from an outcome for the session.
func (n *senders) judge(o bide.Outcome) bide.Outcome {
	switch {
	case o.Status == bide.Confirmed:
		n.suspect.Store(0)
	case errors.Is(o.Err, bide.ErrSessionDown):
		n.suspect.Store(time.Now().Add(suspectFor).UnixNano())
	case errors.Is(o.Err, bide.ErrUnroutable):
		n.s.end(fmt.Errorf("%w: %w", bide.ErrSessionDown, o.Err))
	}
	return o
}

// message is what travels.
func (n *senders) message(send bide.Send) (*primitive.Message, error) {
	m := send.Message
	msg := primitive.NewMessage(n.cfg.Topic(), m.Body())
	// The library's own ids repeat: a second and a 16 bit counter.
	msg.WithProperty(primitive.PropertyUniqueClientMessageIdKeyIndex, m.ID())
	msg.WithKeys([]string{strconv.FormatInt(m.TaskID, 10)})
	switch {
	case send.Level == bide.LevelNone:
	case send.Level == bide.LevelTimer && n.facts.Mode == Timers:
		msg.WithDelayTimestamp(m.DeliverAt)
	case send.Level > 0 && send.Level <= len(n.facts.table):
		msg.WithDelayTimeLevel(n.facts.table[send.Level-1].number)
	default:
		return nil, fmt.Errorf("level %d: the broker has %s", send.Level, n.facts)
	}
	return msg, nil
}

// drain waits until every place is free, so that nothing uses the producer any
// more, no longer than ctx. It may be called again to go on waiting.
func (n *senders) drain(ctx context.Context) {
	for ; n.drained < n.cfg.Senders; n.drained++ {
		select {
		case <-n.free:
		case <-ctx.Done():
			return
		}
	}
}
