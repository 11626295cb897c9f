package rocket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/rocket/internal/remoting"
)

// retryMissing is how often a session looks for brokers that were dead when it
// began.
const retryMissing = time.Second

// session is one connection to the installation: a link to each living master.
// It ends when one of them breaks, and when a missing one is back, so that the
// next session has clients that know the brokers as they are.
type session struct {
	cfg   Config
	links []*link

	ctx   context.Context // ends with the session; its cause says why
	end   context.CancelCauseFunc
	tasks sync.WaitGroup

	mu      sync.Mutex
	missing []error
}

// open links to the masters and makes sure of the topic.
func open(ctx context.Context, cfg Config) (*session, error) {
	masters, err := cfg.masters(ctx)
	if err != nil {
		return nil, err
	}
	links, missing := cfg.connect(ctx, masters)
	if len(links) == 0 {
		return nil, errors.Join(missing...)
	}
	if err := cfg.ensureTopic(ctx, links); err != nil {
		closeLinks(links)
		return nil, err
	}
	s := &session{cfg: cfg, links: links, missing: missing}
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.each(func(l *link) error { return l.guard(s.ctx) })
	if len(missing) > 0 {
		s.tasks.Go(func() { s.seek() })
	}
	return s, nil
}

// watch probes each link with a question until the session ends.
func (s *session) watch(question func(context.Context, *link) error) {
	s.each(func(l *link) error { return l.probe(s.ctx, question) })
}

// each has work done for each link; an error of it ends the session.
func (s *session) each(work func(*link) error) {
	for _, l := range s.links {
		s.tasks.Go(func() {
			if err := work(l); err != nil {
				s.end(err)
			}
		})
	}
}

// seek looks for the missing brokers until they are back or gone for good.
func (s *session) seek() {
	for sleep(s.ctx, retryMissing) {
		masters, err := s.cfg.masters(s.ctx)
		if err != nil {
			continue
		}
		var missing []error
		for _, b := range masters {
			if s.linked(b) {
				continue
			}
			l, err := s.cfg.link(s.ctx, b)
			if err == nil {
				l.conn.Close()
				s.end(errReturned)
				return
			}
			missing = append(missing, err)
		}
		s.mu.Lock()
		s.missing = missing
		s.mu.Unlock()
		if len(missing) == 0 {
			return
		}
	}
}

func (s *session) linked(b remoting.Broker) bool {
	for _, l := range s.links {
		if l.broker.Master == b.Master {
			return true
		}
	}
	return false
}

// absent says which broker that the name server lists does not answer, nil
// when all do.
func (s *session) absent() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missing) > 0 {
		return errors.Join(s.missing...)
	}
	for _, l := range s.links {
		if l.mute() {
			return fmt.Errorf("%w: %s", errMute, l.subject())
		}
	}
	return nil
}

// dead reports whether the broker of that name is known not to answer.
func (s *session) dead(broker string) bool {
	for _, l := range s.links {
		if l.broker.Name == broker {
			return l.mute()
		}
	}
	return s.absent() != nil
}

// mute reports whether no broker answers.
func (s *session) mute() bool {
	for _, l := range s.links {
		if !l.mute() {
			return false
		}
	}
	return true
}

// err is why the session ended, nil while it lives.
func (s *session) err() error { return context.Cause(s.ctx) }

// close ends the session and waits for what runs in it.
func (s *session) close() {
	s.end(errClosed)
	closeLinks(s.links)
	s.tasks.Wait()
}

func down(err error) bide.Session { return bide.Session{State: bide.SessionDown, Err: err} }
