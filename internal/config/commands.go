package config

import (
	"errors"
	"fmt"
	"time"
)

// Producer is the configuration of cmd/producer.
type Producer struct {
	Database
	Broker
	Service
	Relay
}

// Relay tunes the relay.
type Relay struct {
	Listen       string        `envconfig:"BIDE_LISTEN" default:"127.0.0.1:9464" desc:"Address of /healthz, /readyz and /metrics. They give nothing away."`
	PollInterval time.Duration `envconfig:"BIDE_POLL_INTERVAL" default:"100ms" desc:"Pause between two looks for tasks to hand over, a duration of at least 5ms and at most half the slack."`
	BatchLease   time.Duration `envconfig:"BIDE_BATCH_LEASE" default:"30s" desc:"Age at which another producer takes over a batch that was not settled, a duration of 10s to 10m."`
}

func (r *Relay) validate() []error {
	return append(listen(r.Listen), compact(between("BATCH_LEASE", r.BatchLease, 10*time.Second, 10*time.Minute))...)
}

// LoadProducer reads the producer's configuration.
func LoadProducer() (*Producer, error) {
	cfg := &Producer{}
	err := load(cfg)
	var faults []error
	if cfg.PollInterval < 5*time.Millisecond || cfg.PollInterval > cfg.Slack/2 {
		faults = append(faults, fmt.Errorf("BIDE_POLL_INTERVAL=%s: want 5ms to %s, half of BIDE_SLACK, or fresh tasks slip past their windows", cfg.PollInterval, cfg.Slack/2))
	}
	return cfg, errors.Join(append([]error{err}, faults...)...)
}

// Consumer is the configuration of cmd/consumer.
type Consumer struct {
	Database
	Broker
	Service
	Worker
}

// Worker tunes the worker.
type Worker struct {
	Listen       string        `envconfig:"BIDE_LISTEN" default:"127.0.0.1:9465" desc:"Address of /healthz, /readyz and /metrics. They give nothing away."`
	HandlersFile string        `envconfig:"BIDE_HANDLERS_FILE" default:"handlers.yaml" desc:"YAML file that maps each biz_type to its statement; see docs/handlers.md."`
	Executions   int           `envconfig:"BIDE_EXECUTIONS" default:"4" desc:"Transactions at once, 1 to 64, half of them at most for one biz_type. The pool holds two connections for each and four more."`
	BatchWait    time.Duration `envconfig:"BIDE_BATCH_WAIT" default:"2ms" desc:"How long a due task waits for others to share its transaction, a duration of 1ms to 1s."`
	SweepEvery   time.Duration `envconfig:"BIDE_SWEEP_INTERVAL" default:"0s" desc:"Pause between two scans for overdue tasks, a duration of 10ms to 10s. 0s stands for 100ms, or 50ms without a broker."`
	SweepGrace   time.Duration `envconfig:"BIDE_SWEEP_GRACE" default:"3s" desc:"How long a task that was handed to a broker may be overdue before the sweep takes it, a duration of 250ms to 1h."`
	MaxAttempts  int           `envconfig:"BIDE_MAX_ATTEMPTS" default:"10" desc:"Failed executions after which a task is FAILED, 1 to 1000."`
	RetryFirst   time.Duration `envconfig:"BIDE_RETRY_FIRST" default:"1s" desc:"Pause after the first failed execution, doubled with each further one, a duration of 100ms to 1h."`
	RetryMost    time.Duration `envconfig:"BIDE_RETRY_MOST" default:"10m" desc:"Longest pause between two executions, a duration of BIDE_RETRY_FIRST to 24h."`
	Retention    time.Duration `envconfig:"BIDE_RETENTION" default:"720h" desc:"How long finished tasks stay in history, a duration of at least 24h."`
	Consumers    int           `envconfig:"BIDE_RABBITMQ_CONSUMERS" default:"2" desc:"Channels that receive deliveries, 1 to 64."`
	Prefetch     int           `envconfig:"BIDE_RABBITMQ_PREFETCH" default:"2000" desc:"Unacknowledged messages of one channel, 1 to 2000. All channels together must exceed the peak rate per second times the hold (lead and slack)."`
}

func (w *Worker) validate() []error {
	faults := append(listen(w.Listen), compact(
		count("EXECUTIONS", w.Executions, 64),
		between("BATCH_WAIT", w.BatchWait, time.Millisecond, time.Second),
		between("SWEEP_GRACE", w.SweepGrace, 250*time.Millisecond, time.Hour),
		count("MAX_ATTEMPTS", w.MaxAttempts, 1000),
		between("RETRY_FIRST", w.RetryFirst, 100*time.Millisecond, time.Hour),
		between("RETRY_MOST", w.RetryMost, w.RetryFirst, 24*time.Hour),
		between("RETENTION", w.Retention, 24*time.Hour, 100*365*24*time.Hour),
		count("RABBITMQ_CONSUMERS", w.Consumers, 64),
		count("RABBITMQ_PREFETCH", w.Prefetch, 2000),
	)...)
	if w.SweepEvery != 0 {
		faults = append(faults, compact(between("SWEEP_INTERVAL", w.SweepEvery, 10*time.Millisecond, 10*time.Second))...)
	}
	return faults
}

// LoadConsumer reads the consumer's configuration.
func LoadConsumer() (*Consumer, error) {
	cfg := &Consumer{}
	return cfg, load(cfg)
}

// LoadDatabase reads where the ledger is, for commands that need no more.
func LoadDatabase() (*Database, error) {
	cfg := &struct{ Database }{}
	return &cfg.Database, load(cfg)
}

// LoadBroker reads what carries the messages.
func LoadBroker() (*Broker, error) {
	cfg := &struct{ Broker }{}
	return &cfg.Broker, load(cfg)
}

// LoadLevels reads what is needed to plan: everything of the broker but where
// it is.
func LoadLevels() (*Levels, error) {
	cfg := &struct{ Levels }{}
	return &cfg.Levels, load(cfg)
}

// compact drops nil errors.
func compact(errs ...error) []error {
	var faults []error
	for _, err := range errs {
		if err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}
