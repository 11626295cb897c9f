package rabbit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rabbit"
)

// TestCancelledInFlight: when a publish is given up, what was written is
// unknown, at most a window of it, and what was not is refused.
func TestCancelledInFlight(t *testing.T) {
	address := sharedURL(t)
	proxy := brokertest.NewProxy(t, hostOf(t, address))
	cfg := cleanConfig(t)
	cfg.URL, cfg.Window = through(t, address, proxy), 100
	p := newPublisher(t, cfg)
	brokertest.Start(t, p)
	got := consume(t, newSubscriber(t, cfg), true)

	proxy.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	outcomes := p.Publish(ctx, append(sends(p, cfg, 500, 1), sends(p, cfg, 50, 2)...))
	require.Less(t, time.Since(began), time.Second)
	require.Equal(t, map[bide.Status]int{bide.Unknown: 100, bide.Refused: 400}, count(outcomes[:500]))
	require.Equal(t, map[bide.Status]int{bide.Unknown: 50}, count(outcomes[500:]), "no level waits for another")
	for _, o := range outcomes {
		require.ErrorIs(t, o.Err, context.DeadlineExceeded)
	}
	proxy.Resume()
	receiveAll(t, got, 100)
	requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 300, 1)))
}

// TestEndConfirms: the end of Run waits for the confirms of what was written.
func TestEndConfirms(t *testing.T) {
	cfg := cleanConfig(t)
	p := newPublisher(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	require.Eventually(t, func() bool { return p.Session().State == bide.SessionUp }, patience, time.Millisecond)
	published := make(chan []bide.Outcome, 1)
	go func() { published <- p.Publish(t.Context(), sends(p, cfg, 2000, 1)) }()
	require.Eventually(t, func() bool { return len(published) > 0 || rabbit.Unconfirmed(p) > 0 }, patience, 10*time.Microsecond)
	cancel()
	requireConfirmed(t, <-published)
	require.NoError(t, <-ended)
}
