package broker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/broker"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rabbit"
	"github.com/bide-mq/bide/rocket"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// load reads the settings of a broker from these variables.
func load(t *testing.T, variables map[string]string) config.Broker {
	t.Helper()
	for name, value := range variables {
		t.Setenv(name, value)
	}
	cfg, err := config.LoadBroker()
	require.NoError(t, err)
	return *cfg
}

func TestNoneIsNoDriver(t *testing.T) {
	cfg := load(t, map[string]string{"BIDE_BROKER": "none"})
	publisher, err := broker.NewPublisher(cfg, bide.LedgerID{1}, quiet())
	require.NoError(t, err)
	require.Nil(t, publisher)
	subscriber, err := broker.NewSubscriber(cfg, bide.LedgerID{1}, broker.Consuming{}, quiet())
	require.NoError(t, err)
	require.Nil(t, subscriber)
}

func TestEverySettingReachesRabbitMQ(t *testing.T) {
	cfg := load(t, map[string]string{
		"BIDE_RABBITMQ_URL": "amqps://u:p@h/v", "BIDE_RABBITMQ_MANAGEMENT_URL": "http://h:15672", "BIDE_RABBITMQ_PREFIX": "shop",
		"BIDE_RABBITMQ_QUEUE_TYPE": "classic", "BIDE_RABBITMQ_TIERS": "2s 20s", "BIDE_RABBITMQ_CA_FILE": "ca", "BIDE_RABBITMQ_CERT_FILE": "cert",
		"BIDE_RABBITMQ_KEY_FILE": "key", "BIDE_RABBITMQ_SERVER_NAME": "name", "BIDE_LEAD": "80ms", "BIDE_SLACK": "200ms",
	})
	require.Equal(t, rabbit.Config{
		URL: "amqps://u:p@h/v", ManagementURL: "http://h:15672", Prefix: "shop", Ledger: bide.LedgerID{1}, QueueType: rabbit.Classic,
		Tiers: levels.Table{2 * time.Second, 20 * time.Second}, TLS: rabbit.TLS{CAFile: "ca", CertFile: "cert", KeyFile: "key", ServerName: "name"},
		Lead: 80 * time.Millisecond, Slack: 200 * time.Millisecond,
	}, broker.Rabbit(cfg, bide.LedgerID{1}))
}

func TestEverySettingReachesRocketMQ(t *testing.T) {
	cfg := load(t, map[string]string{
		"BIDE_BROKER": "rocketmq", "BIDE_ROCKETMQ_NAME_SERVERS": "a:1, b:2", "BIDE_ROCKETMQ_ACCESS_KEY": "access", "BIDE_ROCKETMQ_SECRET_KEY": "key",
		"BIDE_ROCKETMQ_TLS": "true", "BIDE_ROCKETMQ_NAMESPACE": "space", "BIDE_ROCKETMQ_CLUSTER": "cluster", "BIDE_ROCKETMQ_PREFIX": "shop",
		"BIDE_ROCKETMQ_QUEUES": "4", "BIDE_ROCKETMQ_MODE": "levels", "BIDE_ROCKETMQ_VERSION": "4.9.7", "BIDE_ROCKETMQ_LEVELS": "1s 2s",
		"BIDE_ROCKETMQ_MAX_DELAY": "1h", "BIDE_ROCKETMQ_HORIZON": "30m", "BIDE_SLACK": "200ms",
	})
	require.Equal(t, rocket.Config{
		NameServers: []string{"a:1", "b:2"}, AccessKey: "access", SecretKey: "key", TLS: true, Namespace: "space", Cluster: "cluster", Prefix: "shop",
		Ledger: bide.LedgerID{1}, Queues: 4, Mode: rocket.Levels, Version: "4.9.7", Table: "1s 2s", MaxDelay: time.Hour, Horizon: 30 * time.Minute,
		Lead: 150 * time.Millisecond, Slack: 200 * time.Millisecond,
	}, broker.Rocket(cfg, bide.LedgerID{1}))
}

func TestUpIsAboutTheSessionIfThereIsOne(t *testing.T) {
	t.Parallel()
	require.NoError(t, broker.Up(nil)())
	for state, want := range map[bide.SessionState]string{
		bide.SessionUp: "", bide.SessionBlocked: "the broker session is blocked", bide.SessionDown: "the broker session is down",
	} {
		err := broker.Up(func() bide.Session { return bide.Session{State: state, Err: errors.New("amqp://u:secret@h")} })()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
	}
}

// RocketMQ must be asked what it can do, for as long as it does not answer.
// Meanwhile the service lives, and nothing is claimed.
func TestAPublisherWaitsForRocketMQ(t *testing.T) {
	cfg := load(t, map[string]string{"BIDE_BROKER": "rocketmq", "BIDE_ROCKETMQ_NAME_SERVERS": "127.0.0.1:1"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	heard := &listener{heard: cancel}
	publisher, err := broker.NewPublisher(cfg, bide.LedgerID{1}, slog.New(slog.NewTextHandler(heard, nil)))
	require.NoError(t, err)
	require.NoError(t, publisher.Open(ctx))
	require.Contains(t, heard.text.String(), "ask the brokers what they are")
	require.Equal(t, bide.SessionDown, publisher.Session().State)
}

// listener keeps what is logged and tells that something was.
type listener struct {
	text  bytes.Buffer
	heard func()
}

func (l *listener) Write(p []byte) (int, error) {
	defer l.heard()
	return l.text.Write(p)
}
