package rabbit

import (
	"context"
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
	mostBackoff  = 2 * time.Second
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

// run dials and serves sessions until ctx ends. serve says through up that the
// session is ready for use, and returns when it has ended. A permanent fault
// ends run before the first session was up; afterwards it is logged and tried
// again, since it came while the service was running and may go the same way.
func (v *supervisor) run(ctx context.Context, serve func(ctx context.Context, s *session, up func()) error) error {
	everUp, attempt := false, 0
	up := func() {
		everUp, attempt = true, 0
		v.setLast(nil)
		v.log.InfoContext(ctx, "broker session up", "role", v.role, "broker", v.cfg.endpoint())
	}
	for ctx.Err() == nil {
		err := v.serveOne(ctx, serve, up)
		if ctx.Err() != nil {
			break
		}
		if permanent(err) && !everUp {
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
	s, err := dial(ctx, v.cfg, v.role)
	if err != nil {
		return err
	}
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
	return bide.Session{State: bide.SessionDown, Err: v.last}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
