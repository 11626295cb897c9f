package brokertest

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bide-mq/bide"
)

// Publisher is a driver's publisher, which works while Run runs.
type Publisher interface {
	bide.Publisher
	Run(ctx context.Context) error
}

// System is a broker under test. Each test uses ledgers of its own, so that
// tests run in parallel; what a system makes at the broker for a ledger it
// removes when t ends.
type System struct {
	// Publisher and Subscriber make drivers that are not running yet. The
	// subscriber's drain timeout must be about a second.
	Publisher  func(t *testing.T, ledger bide.LedgerID) Publisher
	Subscriber func(t *testing.T, ledger bide.LedgerID) bide.Subscriber
	// Inject puts a body straight where the ledger's subscriber finds it.
	Inject func(t *testing.T, ledger bide.LedgerID, body []byte)
	// Cut breaks the connections of the ledger's drivers, which may connect
	// again at once.
	Cut func(t *testing.T, ledger bide.LedgerID)
	// Leaks are goroutines that the driver's client library leaves behind.
	Leaks []goleak.Option
	Features
}

// Features are the honest differences between brokers.
type Features struct {
	// Early is how much before DeliverAt a delivery may come.
	Early time.Duration
	// Late is how much after DeliverAt a delivery may come on a busy machine.
	Late time.Duration
	// LongestDelay bounds the delays that are waited for.
	LongestDelay time.Duration
	// Redelivered: the broker marks a message whose consumer went away.
	Redelivered bool
	// EmptyBody: the broker carries a message without a body.
	EmptyBody bool
}

// Run runs the suite. It must be called from a test of its own: it checks that
// no goroutine is left behind.
func Run(t *testing.T, system System) {
	leftBefore := append(system.Leaks, goleak.IgnoreCurrent())
	t.Cleanup(func() { goleak.VerifyNone(t, leftBefore...) })
	for _, tt := range []struct {
		name string
		test func(*testing.T, System)
	}{
		{"capabilities are consistent", testCapabilities},
		{"each level delivers on time", testDelays},
		{"a short delay does not wait behind a long one", testHeadOfLine},
		{"outcomes are in order, one per send", testOutcomes},
		{"a level without meaning is refused alone", testBadLevel},
		{"more than a window is confirmed", testWindow},
		{"publishers share a driver", testConcurrentPublish},
		{"a cancelled publish returns at once", testCancelledPublish},
		{"without a session publishing is refused at once", testNoSession},
		{"the session tells up from down", testSession},
		{"an acknowledged message is gone", testAck},
		{"an unacknowledged message comes again", testRedelivery},
		{"acknowledging twice or late does no harm", testOddAcks},
		{"copies of a message all arrive", testCopies},
		{"ledgers do not see each other's messages", testLedgers},
		{"any body arrives as it is", testBodies},
		{"ending drains", testDrain},
		{"ending does not wait for ever", testDrainBounded},
		{"a broken connection is mended", testCut},
		{"confirmed messages survive broken connections", testCutsUnderLoad},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, system)
		})
	}
}
