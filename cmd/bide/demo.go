package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/broker"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/internal/demo"
	"github.com/bide-mq/bide/outbox"
	"github.com/bide-mq/bide/rabbit"
)

type demoCommand struct {
	Broker string `help:"rabbitmq, rocketmq or none." enum:"rabbitmq,rocketmq,none" default:"rabbitmq"`
	Break  string `help:"With rocketmq: shell command that kills the broker, deletes its store and starts it again." placeholder:"COMMAND"`
	Bin    string `help:"Where the executables producer and consumer are. Defaults to where this one is." placeholder:"DIR"`
	Seed   uint64 `help:"Another number makes the customers behave otherwise." default:"1"`
}

func (c *demoCommand) Run(ctx context.Context, out io.Writer) error {
	database, err := config.LoadDatabase()
	if err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	if err := os.Setenv("BIDE_BROKER", c.Broker); err != nil {
		return err
	}
	carrier, err := config.LoadBroker()
	if err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	cfg := demo.Config{
		DatabaseURL: database.DatabaseURL, BinDir: c.Bin, Broker: c.Broker, Seed: c.Seed,
		Migrate: func(ctx context.Context, url string) error {
			_, err := migrate(ctx, url, outbox.DefaultSchema, "")
			return err
		},
	}
	if cfg.BinDir == "" {
		if cfg.BinDir, err = ownDir(); err != nil {
			return err
		}
	}
	switch c.Broker {
	case config.RabbitMQ:
		withRabbit(&cfg, *carrier)
	case config.RocketMQ:
		if c.Break == "" {
			return fmt.Errorf("--break is missing: want a command that makes the broker lose everything; make demo BROKER=rocketmq has one")
		}
		withRocket(&cfg, *carrier, c.Break)
	}
	_, err = demo.Run(ctx, cfg, out)
	return err
}

// ownDir is where this executable is.
func ownDir() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the executables: %w", err)
	}
	return filepath.Dir(self), nil
}

// withRabbit gives the services their broker and the demo its means to lose
// messages there.
func withRabbit(cfg *demo.Config, carrier config.Broker) {
	cfg.Environment = []string{
		"BIDE_RABBITMQ_URL=" + carrier.RabbitURL,
		"BIDE_RABBITMQ_MANAGEMENT_URL=" + carrier.RabbitManagement,
		"BIDE_RABBITMQ_PREFIX=" + carrier.RabbitPrefix,
		"BIDE_RABBITMQ_QUEUE_TYPE=" + carrier.RabbitQueueType,
		"BIDE_RABBITMQ_TIERS=" + carrier.RabbitTiers,
		"BIDE_RABBITMQ_CA_FILE=" + carrier.RabbitCAFile,
		"BIDE_RABBITMQ_CERT_FILE=" + carrier.RabbitCertFile,
		"BIDE_RABBITMQ_KEY_FILE=" + carrier.RabbitKeyFile,
		"BIDE_RABBITMQ_SERVER_NAME=" + carrier.RabbitServerName,
	}
	cfg.Purge = func(ctx context.Context, ledger bide.LedgerID, least, most int) (int, error) {
		return rabbit.PurgeTier(ctx, broker.Rabbit(carrier, ledger), least, most)
	}
	cfg.Clean = func(ctx context.Context, ledger bide.LedgerID) error {
		return rabbit.DeleteQueues(ctx, broker.Rabbit(carrier, ledger))
	}
}

// withRocket does the same for RocketMQ, whose queues cannot be purged: the
// whole broker is broken.
func withRocket(cfg *demo.Config, carrier config.Broker, breaking string) {
	cfg.Environment = []string{
		"BIDE_ROCKETMQ_NAME_SERVERS=" + carrier.RocketNameServers,
		"BIDE_ROCKETMQ_MODE=" + carrier.RocketMode,
		"BIDE_ROCKETMQ_ACCESS_KEY=" + carrier.RocketAccessKey,
		"BIDE_ROCKETMQ_SECRET_KEY=" + carrier.RocketSecretKey,
		"BIDE_ROCKETMQ_NAMESPACE=" + carrier.RocketNamespace,
		"BIDE_ROCKETMQ_CLUSTER=" + carrier.RocketCluster,
		"BIDE_ROCKETMQ_PREFIX=" + carrier.RocketPrefix,
	}
	cfg.LoseAll = func(ctx context.Context) error {
		output, err := exec.CommandContext(ctx, "bash", "-c", breaking).CombinedOutput() //nolint:gosec // the operator's own command
		if err != nil {
			return fmt.Errorf("%s: %w: %s", breaking, err, output)
		}
		return nil
	}
}
