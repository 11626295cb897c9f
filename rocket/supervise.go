package rocket

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/bide-mq/bide"
)

// Delays between attempts to connect. The longest bounds how much later than
// the broker a session comes back.
const (
	leastBackoff = 100 * time.Millisecond
	mostBackoff  = time.Second
)

// backoff doubles per attempt and is spread over its upper half, so that the
// clients of a broker that restarted do not come back at the same instant.
func backoff(attempt int) time.Duration {
	d := min(leastBackoff<<min(attempt, 10), mostBackoff)
	return d/2 + rand.N(d/2)
}

// supervisor keeps one session alive.
type supervisor struct {
	cfg  Config
	log  *slog.Logger
	role string

	mu   sync.Mutex
	last error // why there is no session
}

// run opens and serves sessions until ctx ends. serve calls up when the session
// is ready for use, and returns when it has ended. A fault ends run before the
// first session was up; later it is logged and tried again, since it came while
// the service was running and may go the same way.
func (v *supervisor) run(ctx context.Context, serve func(ctx context.Context, s *session, up func()) error) error {
	attempt, started := 0, false
	for ctx.Err() == nil {
		err := v.serveOne(ctx, serve, func() {
			attempt, started = 0, true
			v.setLast(nil)
			v.log.InfoContext(ctx, "broker session up", "role", v.role, "broker", v.cfg.endpoint())
		})
		if ctx.Err() != nil {
			break
		}
		if fault, ok := errors.AsType[*bide.Fault](err); ok && (!started || errors.Is(fault, errChanged)) {
			return err
		}
		v.setLast(err)
		wait := backoff(attempt)
		attempt++
		v.log.WarnContext(ctx, "broker session ended", "role", v.role, "err", err, "retry_in", wait)
		sleep(ctx, wait)
	}
	return nil
}

func (v *supervisor) serveOne(ctx context.Context, serve func(context.Context, *session, func()) error, up func()) error {
	s, err := open(ctx, v.cfg)
	if err != nil {
		return err
	}
	defer s.close()
	return serve(ctx, s, up)
}

func (v *supervisor) setLast(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = err
}

// down is the state while there is no session.
func (v *supervisor) down() bide.Session {
	v.mu.Lock()
	defer v.mu.Unlock()
	return down(v.last)
}

// sleep pauses and reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
