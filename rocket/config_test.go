package rocket_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/rocket"
)

// secret must not appear in anything that is printed.
const secret = "s3cr3t-k3y"

func valid() rocket.Config {
	return rocket.Config{NameServers: []string{"localhost:9876"}, Ledger: bide.LedgerID{1}, AccessKey: "ak", SecretKey: secret}.WithDefaults()
}

func TestDefaultsAreValid(t *testing.T) {
	require.NoError(t, valid().Validate())
	require.Zero(t, valid().Horizon, "its default depends on the broker")
}

func TestConfigFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*rocket.Config)
		want   string
	}{
		{"no name server", func(c *rocket.Config) { c.NameServers = nil }, "name servers: none, want at least one host:port"},
		{"scheme", func(c *rocket.Config) { c.NameServers = []string{"http://mq:9876"} }, `name server "http://mq:9876": want host:port without a scheme`},
		{"no port", func(c *rocket.Config) { c.NameServers = []string{"mq"} }, `name server "mq": want host:port`},
		{"several in one", func(c *rocket.Config) { c.NameServers = []string{"a:9876;b:9876"} }, `name server "a:9876;b:9876": want host:port`},
		{"no host", func(c *rocket.Config) { c.NameServers = []string{":9876"} }, "want host:port"},
		{"no such port", func(c *rocket.Config) { c.NameServers = []string{"mq:98765"} }, "want host:port"},
		{"half the credentials", func(c *rocket.Config) { c.AccessKey = "" }, "want both an access key and a secret key, or neither"},
		{"tls", func(c *rocket.Config) { c.TLS = true }, "without verifying the broker's certificate"},
		{"prefix", func(c *rocket.Config) { c.Prefix = "a.b" }, `prefix "a.b": want 1 to 60 letters`},
		{"namespace", func(c *rocket.Config) { c.Namespace = "a%b" }, `namespace "a%b"`},
		{"no ledger", func(c *rocket.Config) { c.Ledger = bide.LedgerID{} }, "ledger: missing"},
		{"mode", func(c *rocket.Config) { c.Mode = "timer" }, `mode "timer": want "auto", "levels" or "timers"`},
		{"version", func(c *rocket.Config) { c.Version = "3.2.6" }, `version "3.2.6": want one of the 4.x or 5.x line`},
		{"table", func(c *rocket.Config) { c.Table = "1s 5x" }, "table: messageDelayLevel, level 2:"},
		{"max delay", func(c *rocket.Config) { c.MaxDelay = 1500 * time.Millisecond }, "max delay 1.5s: want whole seconds"},
		{"horizon", func(c *rocket.Config) { c.Horizon = time.Second }, "horizon 1s: want at least 5s"},
		{"queues", func(c *rocket.Config) { c.Queues = 65 }, "queues 65: want 1 to 64"},
		{"batch", func(c *rocket.Config) { c.Batch = -1 }, "batch -1: want 1 to 1024"},
		{"goroutines", func(c *rocket.Config) { c.Goroutines = 100_001 }, "goroutines 100001: want 1 to 100000"},
		{"confirm timeout", func(c *rocket.Config) { c.ConfirmTimeout = time.Minute }, "confirm timeout 1m0s: want 1s to 15s"},
		{"lead", func(c *rocket.Config) { c.Lead = -1 }, "lead -1ns: want 0s to 1s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := valid()
			tt.change(&cfg)
			require.ErrorContains(t, cfg.Validate(), tt.want)
			require.NotContains(t, cfg.Validate().Error(), secret)
			_, err := rocket.NewSubscriber(cfg, logger(t))
			require.ErrorContains(t, err, tt.want)
			_, err = rocket.NewPublisher(cfg, rocket.Facts{Mode: rocket.Timers}, logger(t))
			require.ErrorContains(t, err, tt.want)
			_, err = rocket.Discover(t.Context(), cfg)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAllConfigFaultsAtOnce(t *testing.T) {
	err := rocket.Config{Queues: -1, Mode: "?"}.WithDefaults().Validate()
	for _, want := range []string{"name servers", "ledger", "queues", "mode"} {
		require.ErrorContains(t, err, want)
	}
}

func TestPublisherWantsFacts(t *testing.T) {
	_, err := rocket.NewPublisher(valid(), rocket.Facts{}, logger(t))
	require.ErrorContains(t, err, "want the facts that Discover returned")
}

func TestNames(t *testing.T) {
	cfg := valid()
	require.Equal(t, "bide-01000000-v1", cfg.Topic())
	require.Equal(t, "bide-01000000-v1-workers", cfg.Group())
	cfg.Namespace = "shop"
	require.Equal(t, "shop%bide-01000000-v1", cfg.Topic())
	require.Equal(t, "shop%bide-01000000-v1-workers", cfg.Group())
}

func TestConfigHidesKeys(t *testing.T) {
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		require.NotContains(t, fmt.Sprintf(format, valid()), secret)
	}
}
