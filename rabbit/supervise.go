package rabbit

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bide-mq/bide"
)

// Delays between attempts to connect. The longest bounds how much later than
// the broker a session comes back.
const (
	leastBackoff = 100 * time.Millisecond
	mostBackoff  = 2 * time.Second
	// loggedAttempts is how many in a row are logged one by one; then every
	// so many are.
	loggedAttempts = 20
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

	// started is set when the first session was up and, where the management
	// API is at hand, its policies were found in order.
	started atomic.Bool

	mu   sync.Mutex
	last error // why there is no session
}

// run dials and serves sessions until ctx ends. serve calls up when the
// session is ready for use, and returns when it has ended. A permanent fault
// ends run at start-up only; later it is logged and tried again, since it came
// while the service was running and may go the same way.
func (v *supervisor) run(ctx context.Context, serve func(ctx context.Context, s *session, up func()) error) error {
	attempt, doubts := 0, 0
	for ctx.Err() == nil {
		err := v.serveOne(ctx, serve, func(s *session) {
			attempt = 0
			v.setLast(nil)
			v.log.InfoContext(ctx, "broker session up", "role", v.role, "broker", v.cfg.endpoint())
			v.startUp(s)
		})
		if ctx.Err() != nil {
			break
		}
		if fault, ok := errors.AsType[*bide.Fault](err); ok && !v.started.Load() {
			if doubts++; !doubtful(fault) || doubts > 1 {
				return err
			}
		} else {
			doubts = 0
		}
		v.setLast(err)
		wait := backoff(attempt)
		attempt++
		if attempt <= loggedAttempts || attempt%loggedAttempts == 0 {
			v.log.WarnContext(ctx, "broker session ended", "role", v.role, "err", err, "attempt", attempt, "retry_in", wait)
		}
		sleep(ctx, wait)
	}
	return nil
}

func (v *supervisor) serveOne(ctx context.Context, serve func(context.Context, *session, func()) error, up func(*session)) error {
	s, err := dial(ctx, v.cfg, v.role)
	if err != nil {
		return err
	}
	return serve(ctx, s, func() { up(s) })
}

// startUp looks for policies that break the topology, once, without keeping
// the session from its work meanwhile. An API that does not answer is no reason
// not to start.
func (v *supervisor) startUp(s *session) {
	if v.started.Load() || v.cfg.ManagementURL == "" {
		v.started.Store(true)
		return
	}
	s.tasks.Go(func() {
		ctx, cancel := s.context()
		defer cancel()
		findings, err := checkPolicies(ctx, v.cfg)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			v.log.WarnContext(ctx, "policies were not checked", "role", v.role, "err", err)
		}
		var faults []error
		for _, f := range findings {
			if f.Severity == bide.SeverityError {
				faults = append(faults, &bide.Fault{Finding: f})
				continue
			}
			v.log.WarnContext(ctx, "broker check", "role", v.role, "subject", f.Subject, "problem", f.Problem, "remedy", f.Remedy)
		}
		if len(faults) > 0 {
			s.fail(errors.Join(faults...))
			return
		}
		v.started.Store(true)
	})
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
