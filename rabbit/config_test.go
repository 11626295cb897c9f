package rabbit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rabbit"
)

const secret = "c4nary-secret"

func valid() rabbit.Config {
	return rabbit.Config{URL: "amqp://bide:" + secret + "@broker.example:5673/shop", Ledger: bide.LedgerID{0xab, 0xcd, 0xef, 0x01}}.WithDefaults()
}

func TestDefaultsAreValid(t *testing.T) {
	cfg := valid()
	require.NoError(t, cfg.Validate())
	require.Equal(t, []string{
		"bide.abcdef01.v1.q.delivery",
		"bide.abcdef01.v1.q.650", "bide.abcdef01.v1.q.9650", "bide.abcdef01.v1.q.59650",
		"bide.abcdef01.v1.q.599650", "bide.abcdef01.v1.q.1799650", "bide.abcdef01.v1.q.7199650",
	}, cfg.Queues())
	cfg.QueueType = rabbit.Classic
	require.Equal(t, "bide.abcdef01.v1.c.delivery", cfg.DeliveryQueue())
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*rabbit.Config)
		want   string
	}{
		{"no url", func(c *rabbit.Config) { c.URL = "" }, "url: not an AMQP URL"},
		{"other scheme", func(c *rabbit.Config) { c.URL = "https://u:" + secret + "@h" }, "url: not an AMQP URL"},
		{"unescaped password", func(c *rabbit.Config) { c.URL = "amqp://u:" + secret + "/x@h" }, "url: not an AMQP URL"},
		{"unescaped space", func(c *rabbit.Config) { c.URL = "amqp://u:" + secret + " x@h" }, "url: not an AMQP URL"},
		{"tls in the url", func(c *rabbit.Config) { c.URL = "amqps://u:" + secret + "@h?cacertfile=/ca" }, `url: parameter "cacertfile" is not supported`},
		{"time-out in the url", func(c *rabbit.Config) { c.URL = "amqp://u:" + secret + "@h?connection_timeout=1" }, `parameter "connection_timeout"`},
		{"management", func(c *rabbit.Config) { c.ManagementURL = "http://u:" + secret + "/x@h:1" }, "management url: want"},
		{"management scheme", func(c *rabbit.Config) { c.ManagementURL = "u:" + secret + "@h" }, "management url: want"},
		{"ledger", func(c *rabbit.Config) { c.Ledger = bide.LedgerID{} }, "ledger: missing"},
		{"prefix form", func(c *rabbit.Config) { c.Prefix = "a b" }, `prefix "a b": want`},
		{"prefix length", func(c *rabbit.Config) { c.Prefix = fmt.Sprintf("%0101d", 0) }, "prefix"},
		{"prefix reserved", func(c *rabbit.Config) { c.Prefix = "amq.bide" }, "the broker's own"},
		{"queue type", func(c *rabbit.Config) { c.QueueType = "stream" }, `queue type "stream": want "quorum" or "classic"`},
		{"no tiers", func(c *rabbit.Config) { c.Tiers = levels.Table{} }, "tiers: none"},
		{"tier too short", func(c *rabbit.Config) { c.Tiers = levels.Table{300 * time.Millisecond, time.Minute} }, "level 1"},
		{"tiers too close", func(c *rabbit.Config) { c.Tiers = levels.Table{2 * time.Second, 2100 * time.Millisecond} }, "tier 2 (2.1s): want ascending delays more than the slack (250ms) apart"},
		{"tiers descend", func(c *rabbit.Config) { c.Tiers = levels.Table{time.Minute, time.Second} }, "tier 2 (1s)"},
		{"tier of parts", func(c *rabbit.Config) { c.Tiers = levels.Table{time.Second + time.Microsecond} }, "whole milliseconds"},
		{"tier beyond the broker", func(c *rabbit.Config) { c.Tiers = levels.Table{11 * 365 * 24 * time.Hour} }, "the broker's limit"},
		{"window", func(c *rabbit.Config) { c.Window = 257 }, "window 257: want 1 to 256"},
		{"window negative", func(c *rabbit.Config) { c.Window = -1 }, "window -1"},
		{"prefetch", func(c *rabbit.Config) { c.Prefetch = 2001 }, "prefetch 2001: want 1 to 2000"},
		{"consumers", func(c *rabbit.Config) { c.Consumers = 65 }, "consumers 65"},
		{"confirm timeout", func(c *rabbit.Config) { c.ConfirmTimeout = time.Minute }, "confirm timeout 1m0s: want 1s to 15s"},
		{"heartbeat of parts", func(c *rabbit.Config) { c.Heartbeat = 1500 * time.Millisecond }, "heartbeat 1.5s"},
		{"lead", func(c *rabbit.Config) { c.Lead = -1 }, "lead -1ns"},
		{"slack", func(c *rabbit.Config) { c.Slack = 2 * time.Second }, "slack 2s"},
		{"half a certificate", func(c *rabbit.Config) { c.URL = "amqps://h"; c.TLS.CertFile = "c.pem" }, "needs both"},
		{"no such authority", func(c *rabbit.Config) { c.URL = "amqps://h"; c.TLS.CAFile = "/nowhere" }, "tls: read authorities"},
		{"tls without tls", func(c *rabbit.Config) { c.TLS.ServerName = "x" }, "tls: set for an amqp URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := valid()
			tt.change(&cfg)
			err := cfg.Validate()
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), secret)
			_, err = rabbit.NewPublisher(cfg, nil)
			require.ErrorContains(t, err, tt.want)
			_, err = rabbit.NewSubscriber(cfg, nil)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestValidateReportsAllFaults(t *testing.T) {
	cfg := valid()
	cfg.URL, cfg.Prefix, cfg.Window, cfg.QueueType = "nonsense", "", 1000, "stream"
	err := cfg.Validate()
	for _, want := range []string{"url", "prefix", "window", "queue type"} {
		require.ErrorContains(t, err, want)
	}
}

func TestConfigKeepsItsSecrets(t *testing.T) {
	cfg := valid()
	cfg.ManagementURL = "http://bide:" + secret + "@broker.example:15672"
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.NotContains(t, fmt.Sprintf(verb, cfg), secret, verb)
	}
	require.Contains(t, cfg.String(), "broker.example:5673")
}

func TestCapabilities(t *testing.T) {
	p, err := rabbit.NewPublisher(valid(), nil)
	require.NoError(t, err)
	caps := p.Capabilities()
	require.Equal(t, 650*time.Millisecond, caps.Delays[0], "1 s less lead and slack")
	require.Equal(t, 256, caps.Window)
	caps.Delays[0] = 0
	require.NotZero(t, p.Capabilities().Delays[0], "the caller's copy")

	plan, err := levels.NewPlan(p.Capabilities(), 250*time.Millisecond)
	require.NoError(t, err, "a planner takes what the driver offers")
	answer := plan.At(30*time.Minute - time.Millisecond)
	require.Equal(t, levels.Send, answer.Kind, "a task just scheduled for a tier's nominal delay goes at once")
	require.Equal(t, 5, answer.Level)
}

// TestNamesDoNotMeet shows that nothing a queue cannot change is missing from
// its name.
func TestNamesDoNotMeet(t *testing.T) {
	seen := map[string]bool{}
	for _, ledger := range []bide.LedgerID{brokertest.NewLedger(), brokertest.NewLedger()} {
		for _, of := range []rabbit.QueueType{rabbit.Quorum, rabbit.Classic} {
			for _, prefix := range []string{"bide", "shop"} {
				cfg := valid()
				cfg.Ledger, cfg.QueueType, cfg.Prefix = ledger, of, prefix
				for _, name := range cfg.Queues() {
					require.False(t, seen[name], name)
					seen[name] = true
				}
			}
		}
	}
}
