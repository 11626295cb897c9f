package rabbit_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rabbit"
)

// TestCheck looks at one broker in several conditions.
func TestCheck(t *testing.T) {
	broker := ownBroker(t)
	cfg := broker.config()
	cfg.ManagementURL = broker.management
	p := newPublisher(t, cfg)
	brokertest.Start(t, p)

	t.Run("nobody consumes, and the management API's user is no administrator", func(t *testing.T) {
		broker.do(t, "ctl", "add_user", "watcher", secret)
		broker.do(t, "ctl", "set_user_tags", "watcher", "monitoring")
		broker.do(t, "ctl", "set_permissions", "watcher", "", "", "")
		cfg := cfg
		u, err := url.Parse(broker.management)
		require.NoError(t, err)
		u.User = url.UserPassword("watcher", secret)
		cfg.ManagementURL = u.String()
		findings := rabbit.Check(t.Context(), cfg)
		requireFinding(t, findings, bide.SeverityWarning, "queue "+cfg.DeliveryQueue(), "has no consumer")
		require.Equal(t, bide.SeverityInfo, findings[1].Severity, "%v", findings)
	})
	t.Run("in order", func(t *testing.T) {
		s := newSubscriber(t, cfg)
		consume(t, s, true)
		before := broker.queues(t)
		findings := rabbit.Check(t.Context(), cfg)
		require.Len(t, findings, 1, "%v", findings)
		requireFinding(t, findings, bide.SeverityInfo, "dead-letter worker", "prefetch cannot be read")
		require.Equal(t, before, broker.queues(t), "nothing is left behind")
	})
	t.Run("default settings of the dead-letter worker, and a backlog", func(t *testing.T) {
		requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 10_001, bide.LevelNone)))
		setting := "application:set_env(rabbit, dead_letter_worker_publisher_confirm_timeout, "
		broker.do(t, "ctl", "eval", setting+"180000).")
		defer broker.do(t, "ctl", "eval", setting+"5000).")
		findings := rabbit.Check(t.Context(), cfg)
		requireFinding(t, findings, bide.SeverityWarning, "dead-letter worker", "does not try again within")
		findings = append(findings, rabbit.Check(t.Context(), classic(cfg))...) // the statistics are fresh by now
		requireFinding(t, findings, bide.SeverityInfo, "queue "+cfg.DeliveryQueue(), "holds 10001 messages")
	})
	t.Run("an alarm", func(t *testing.T) {
		broker.do(t, "ctl", "set_disk_free_limit", "100000GB")
		defer broker.do(t, "ctl", "set_disk_free_limit", "50MB")
		findings := rabbit.Check(t.Context(), cfg)
		requireFinding(t, findings, bide.SeverityWarning, "dead-letter worker", "was not checked")
		requireFinding(t, findings, bide.SeverityWarning, "queue "+cfg.DeliveryQueue(), "holds 10001 messages")
		require.Eventually(t, func() bool { // once the statistics have it
			return slices.ContainsFunc(rabbit.Check(t.Context(), classic(cfg)), func(f bide.Finding) bool {
				return strings.HasPrefix(f.Subject, "broker node") && strings.Contains(f.Problem, "disk alarm")
			})
		}, patience, 100*time.Millisecond)
	})
	t.Run("other tiers and the other type", func(t *testing.T) {
		other := classic(cfg)
		other.Tiers = levels.Table{cfg.Tiers[0]}
		findings := rabbit.Check(t.Context(), other)
		names := other.Queues()
		requireFinding(t, findings, bide.SeverityInfo, "queues", "do not exist yet: "+names[0]+", "+names[1])
		requireFinding(t, findings, bide.SeverityInfo, "queue "+cfg.DeliveryQueue(), "the other queue type")
		requireFinding(t, findings, bide.SeverityInfo, "queue "+cfg.Queues()[1], "does not have")
		requireFinding(t, findings, bide.SeverityWarning, "queue type", "at most once")
		require.NotContains(t, broker.queues(t), names[0], "a check makes nothing")
	})
	t.Run("no management API", func(t *testing.T) {
		cfg := classic(cfg)
		cfg.ManagementURL = ""
		requireFinding(t, rabbit.Check(t.Context(), cfg), bide.SeverityInfo, "management API", "were not looked for")
	})
	t.Run("a management API that refuses", func(t *testing.T) {
		cfg := classic(cfg)
		u, err := url.Parse(broker.management)
		require.NoError(t, err)
		u.User = url.UserPassword("bide", secret)
		cfg.ManagementURL = u.String()
		findings := rabbit.Check(t.Context(), cfg)
		requireFinding(t, findings, bide.SeverityWarning, "management API", "queues and policies were not checked")
		for _, f := range findings {
			require.NotContains(t, f.String(), secret)
		}
		brokertest.Start(t, newPublisher(t, cfg)) // no reason not to start
	})
	t.Run("an invalid configuration", func(t *testing.T) {
		findings := rabbit.Check(t.Context(), rabbit.Config{})
		require.Len(t, findings, 1)
		require.Equal(t, bide.SeverityError, findings[0].Severity)
		require.Contains(t, findings[0].Problem, "ledger: missing")
	})
}

// classic is quicker to check: there is no dead-letter worker.
func classic(cfg rabbit.Config) rabbit.Config {
	cfg.QueueType = rabbit.Classic
	return cfg
}

// queues lists the broker's queues.
func (b *instance) queues(t testing.TB) string {
	t.Helper()
	return b.do(t, "ctl", "list_queues", "--quiet", "name")
}
