package rocket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/rocket/internal/remoting"
)

const (
	// muteAfter is how long the broker may owe an answer before it counts as
	// gone.
	muteAfter = time.Second
	// lostAfter is how long a broker may be mute before the session is given
	// up: connections through a network that forgot them never answer again.
	lostAfter = 5 * time.Second
	// askEvery is the pause between probes.
	askEvery = 250 * time.Millisecond
)

// link is the driver's own connection to one master. The client library has
// others; what happens to a broker happens to all of them.
type link struct {
	broker remoting.Broker
	facts  BrokerFacts
	conn   *remoting.Conn
	asked  atomic.Pointer[time.Time] // when the unanswered probe left
}

func (l *link) subject() string {
	return fmt.Sprintf("broker %s at %s", l.broker.Name, l.broker.Master)
}

// connect links to each of the masters. Some may be dead: name servers list a
// broker for two minutes after its last word.
func (c Config) connect(ctx context.Context, masters []remoting.Broker) (links []*link, missing []error) {
	all, errs := make([]*link, len(masters)), make([]error, len(masters))
	var dialing sync.WaitGroup
	for i, b := range masters {
		dialing.Go(func() { all[i], errs[i] = c.link(ctx, b) })
	}
	dialing.Wait()
	for i, l := range all {
		if errs[i] != nil {
			missing = append(missing, errs[i])
			continue
		}
		links = append(links, l)
	}
	return links, missing
}

// link connects to a broker and asks what it is: the socket of one that has
// stopped still takes connections.
func (c Config) link(ctx context.Context, b remoting.Broker) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	l := &link{broker: b}
	conn, err := remoting.Dial(ctx, b.Master, c.credentials())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", bide.ErrSessionDown, l.subject(), err)
	}
	l.conn = conn
	if l.facts, err = l.ask(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %s: %w", bide.ErrSessionDown, l.subject(), err)
	}
	return l, nil
}

// ask asks the broker what it is. A refusal is a fact, too.
func (l *link) ask(ctx context.Context) (BrokerFacts, error) {
	settings, version, err := l.conn.BrokerConfig(ctx)
	facts := BrokerFacts{Name: l.broker.Name, Address: l.broker.Master, Version: version, Settings: settings}
	if _, answered := errors.AsType[*remoting.Refusal](err); answered {
		facts.Denied, err = err, nil
	}
	return facts, err
}

// guard waits for the end of the link, or of ctx.
func (l *link) guard(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.conn.Done():
		return fmt.Errorf("%w: %s: %w", bide.ErrSessionDown, l.subject(), l.conn.Err())
	}
}

// probe puts a question to the broker until ctx ends. A refusal is as good an
// answer as any; another error ends the probing.
func (l *link) probe(ctx context.Context, question func(context.Context, *link) error) error {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			l.asked.Store(&now)
		}
		if err := l.put(ctx, question); err != nil {
			return err
		}
		l.asked.Store(nil)
	}
}

func (l *link) put(ctx context.Context, question func(context.Context, *link) error) error {
	limited, cancel := context.WithTimeout(ctx, lostAfter)
	defer cancel()
	err := question(limited, l)
	_, answered := errors.AsType[*remoting.Refusal](err)
	switch {
	case err == nil, answered, ctx.Err() != nil:
		return nil
	case limited.Err() != nil:
		return fmt.Errorf("%w: %s", errMute, l.subject())
	}
	return err
}

// mute reports whether the broker has stopped answering.
func (l *link) mute() bool {
	asked := l.asked.Load()
	return asked != nil && time.Since(*asked) > muteAfter
}
