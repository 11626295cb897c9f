package rabbit

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

const (
	// muteAfter is how long an answer may be outstanding before the session
	// counts as down. Heartbeats alone notice a mute broker after 3 s or more.
	muteAfter = time.Second
	// askEvery is the period of the session's own probe.
	askEvery = time.Second
	// closeGrace bounds the closing handshake, which hangs when the broker has
	// stopped reading.
	closeGrace = 2 * time.Second
)

// session is one connection to the broker and what is known of its health.
type session struct {
	conn   *amqp.Connection
	socket net.Conn
	cfg    Config

	// done is closed when the session has failed or was closed; err, set
	// before, says why.
	done chan struct{}
	once sync.Once
	err  error

	blocked atomic.Pointer[string]    // why the broker takes no publishes
	asked   atomic.Pointer[time.Time] // when the unanswered probe left
	tasks   sync.WaitGroup
}

// dial opens a session. role tells the connections of one process apart in the
// broker's console.
func dial(ctx context.Context, cfg Config, role string) (*session, error) {
	s := &session{cfg: cfg, done: make(chan struct{})}
	secure, err := cfg.TLS.config()
	if err != nil {
		return nil, err
	}
	release := func() bool { return true }
	s.conn, err = amqp.DialConfig(cfg.URL, amqp.Config{
		Heartbeat:       cfg.Heartbeat,
		Properties:      clientProperties(cfg, role),
		TLSClientConfig: secure,
		Dial: func(_, addr string) (net.Conn, error) {
			socket, err := connect(ctx, addr, cfg)
			if err != nil {
				return nil, err
			}
			s.socket = socket
			release = context.AfterFunc(ctx, func() { socket.Close() })
			return socket, nil
		},
	})
	release()
	if err != nil {
		if s.socket != nil {
			s.socket.Close() // the library leaves it open
		}
		return nil, translateDial(cfg, err)
	}
	closes := s.conn.NotifyClose(make(chan *amqp.Error, 1))
	blocks := s.conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	s.tasks.Go(func() { s.watch(closes, blocks) })
	return s, nil
}

func clientProperties(cfg Config, role string) amqp.Table {
	properties := amqp.NewConnectionProperties()
	host, _ := os.Hostname() // only a label
	properties.SetClientConnectionName(fmt.Sprintf("bide %s %s %s/%d", role, cfg.Ledger.Short(), host, os.Getpid()))
	return properties
}

// watch follows the connection until it ends. It always drains both
// notifications: the library drops events, or waits, when nobody listens.
func (s *session) watch(closes <-chan *amqp.Error, blocks <-chan amqp.Blocking) {
	ticker := time.NewTicker(muteAfter / 4)
	defer ticker.Stop()
	for {
		select {
		case cause := <-closes:
			s.fail(translateClose(cause))
			return
		case b, open := <-blocks:
			if !open {
				blocks = nil
				continue
			}
			s.setBlocked(b)
		case <-ticker.C:
			if s.silence() > s.cfg.ConfirmTimeout {
				s.fail(errMute)
			}
		}
	}
}

func (s *session) setBlocked(b amqp.Blocking) {
	if b.Active {
		s.blocked.Store(&b.Reason)
		return
	}
	// The broker reads again; what it was asked meanwhile counts from now on.
	if s.asked.Load() != nil {
		now := time.Now()
		s.asked.Store(&now)
	}
	s.blocked.Store(nil)
}

// probe puts a question to the broker every second until the session ends, and
// fails the session when the answer is an error.
func (s *session) probe(question func(*amqp.Connection) error) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return
		case now := <-ticker.C:
			s.asked.Store(&now)
			err := question(s.conn)
			s.asked.Store(nil)
			if err != nil {
				s.fail(translate(err))
			}
		}
	}
}

// silence is how long the broker owes the answer to the session's probe; 0
// while it blocks the connection, because then it does not read.
func (s *session) silence() time.Duration {
	asked := s.asked.Load()
	if asked == nil || s.blocked.Load() != nil {
		return 0
	}
	return time.Since(*asked)
}

// mute reports whether the broker has stopped answering altogether.
func (s *session) mute() bool { return s.silence() > muteAfter }

// fail ends the session; the first reason stays. The owner closes it.
func (s *session) fail(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.done)
	})
}

// context returns one that ends with the session.
func (s *session) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	s.tasks.Go(func() {
		defer cancel()
		select {
		case <-s.done:
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// close ends the connection. Whatever hangs in a call to the library returns.
func (s *session) close() {
	s.fail(errClosed)
	guard := time.AfterFunc(closeGrace+closeGrace/4, func() { s.socket.Close() })
	defer guard.Stop()
	// An error only says that the connection had ended already or did not
	// answer, and it is closed either way.
	_ = s.conn.CloseDeadline(time.Now().Add(closeGrace))
	s.tasks.Wait()
}

// state says what the session is good for.
func (s *session) state() bide.Session {
	select {
	case <-s.done:
		return bide.Session{State: bide.SessionDown, Err: s.err}
	default:
	}
	if reason := s.blocked.Load(); reason != nil {
		return bide.Session{State: bide.SessionBlocked, Err: blockedError(*reason)}
	}
	if s.mute() {
		return bide.Session{State: bide.SessionDown, Err: errMute}
	}
	return bide.Session{State: bide.SessionUp}
}
