package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/outbox"
)

// Database says where the ledger is.
type Database struct {
	DatabaseURL     string `envconfig:"BIDE_DATABASE_URL" desc:"The ledger's database, postgres://user:password@host:port/database?sslmode=verify-full. A secret: see BIDE_DATABASE_URL_FILE. Required."`
	DatabaseURLFile string `envconfig:"BIDE_DATABASE_URL_FILE" desc:"File that holds the database URL, instead of the variable."`
	Schema          string `envconfig:"BIDE_SCHEMA" default:"bide" desc:"PostgreSQL schema of the ledger."`
}

func (d *Database) validate() (faults []error) {
	var err error
	if d.DatabaseURL, err = secret("DATABASE_URL", d.DatabaseURL, d.DatabaseURLFile); err != nil {
		faults = append(faults, err)
	} else if d.DatabaseURL == "" {
		faults = append(faults, errors.New("BIDE_DATABASE_URL is not set: want postgres://user:password@host:port/database, or BIDE_DATABASE_URL_FILE"))
	} else if _, err := outbox.PoolConfig(d.DatabaseURL, 1); err != nil {
		faults = append(faults, fmt.Errorf("BIDE_DATABASE_URL: %w", err))
	}
	if err := outbox.Schema(d.Schema).Validate(); err != nil {
		faults = append(faults, fmt.Errorf("BIDE_SCHEMA: %w", err))
	}
	return faults
}

// Brokers.
const (
	RabbitMQ = "rabbitmq"
	RocketMQ = "rocketmq"
	None     = "none"
)

// Levels says which broker carries the messages and how its delays are used.
type Levels struct {
	Broker      string        `envconfig:"BIDE_BROKER" default:"rabbitmq" desc:"rabbitmq, rocketmq, or none: the consumers' sweep does everything and only PostgreSQL is needed."`
	Slack       time.Duration `envconfig:"BIDE_SLACK" default:"250ms" desc:"Width of the window in which a task is handed over for a delay level, a duration of 20ms to 400ms. The same for producers and consumers."`
	Lead        time.Duration `envconfig:"BIDE_LEAD" default:"0s" desc:"How long before its time a message should arrive, to be held until then: the broker's usual delivery lag, a duration of up to 480ms. 0s stands for 100ms with rabbitmq and 150ms with rocketmq. Lead and slack together are at most 500ms. The same for producers and consumers."`
	RabbitTiers string        `envconfig:"BIDE_RABBITMQ_TIERS" default:"1s 10s 1m 10m 30m 2h" desc:"Delay levels, ascending; units s, m, h and d. A level that equals a common delay saves that delay the wait in the ledger."`

	tiers levels.Table
}

// DriverLead is the configured lead, or else what suits the broker.
func (l *Levels) DriverLead() time.Duration {
	switch {
	case l.Lead != 0:
		return l.Lead
	case l.Broker == RocketMQ:
		return 150 * time.Millisecond
	default:
		return 100 * time.Millisecond
	}
}

// Tiers returns the parsed delay levels.
func (l *Levels) Tiers() levels.Table { return l.tiers }

func (l *Levels) validate() (faults []error) {
	if l.Broker != RabbitMQ && l.Broker != RocketMQ && l.Broker != None {
		faults = append(faults, fmt.Errorf("BIDE_BROKER=%q: want %s, %s or %s", l.Broker, RabbitMQ, RocketMQ, None))
	}
	faults = append(faults, compact(
		between("SLACK", l.Slack, 20*time.Millisecond, 400*time.Millisecond),
		between("LEAD", l.Lead, 0, 480*time.Millisecond))...)
	if held := l.DriverLead() + l.Slack; held > levels.MaxLevelHold {
		faults = append(faults, fmt.Errorf("BIDE_LEAD and BIDE_SLACK are %s together: want at most %s, the longest that messages may be held", held, levels.MaxLevelHold))
	}
	var err error
	if l.tiers, err = levels.ParseTable(l.RabbitTiers); err != nil {
		faults = append(faults, fmt.Errorf("BIDE_RABBITMQ_TIERS: %w", err))
	}
	return faults
}

// Broker says what carries the messages, and where it is.
type Broker struct {
	Levels
	Rocket
	RabbitURL            string `envconfig:"BIDE_RABBITMQ_URL" desc:"amqp://user:password@host:port/vhost, or amqps://. A secret: see BIDE_RABBITMQ_URL_FILE. Required for rabbitmq."`
	RabbitURLFile        string `envconfig:"BIDE_RABBITMQ_URL_FILE" desc:"File that holds the RabbitMQ URL, instead of the variable."`
	RabbitManagement     string `envconfig:"BIDE_RABBITMQ_MANAGEMENT_URL" desc:"http://user:password@host:15672, to check policies and queues at start and in bide doctor. A secret. Without it only what AMQP shows is checked."`
	RabbitManagementFile string `envconfig:"BIDE_RABBITMQ_MANAGEMENT_URL_FILE" desc:"File that holds the management URL, instead of the variable."`
	RabbitPrefix         string `envconfig:"BIDE_RABBITMQ_PREFIX" default:"bide" desc:"Opens every queue's name."`
	RabbitQueueType      string `envconfig:"BIDE_RABBITMQ_QUEUE_TYPE" default:"quorum" desc:"quorum (replicated, dead-letters at least once) or classic."`
	RabbitCAFile         string `envconfig:"BIDE_RABBITMQ_CA_FILE" desc:"PEM file with the certificate authorities to trust for amqps, instead of the system's."`
	RabbitCertFile       string `envconfig:"BIDE_RABBITMQ_CERT_FILE" desc:"PEM file with the client certificate for amqps."`
	RabbitKeyFile        string `envconfig:"BIDE_RABBITMQ_KEY_FILE" desc:"PEM file with the client certificate's key."`
	RabbitServerName     string `envconfig:"BIDE_RABBITMQ_SERVER_NAME" desc:"Name to expect in the server's certificate, instead of the URL's host."`

	sound bool
}

// Sound reports whether the section has no faults, so that its driver has
// something to look at.
func (b *Broker) Sound() bool { return b.sound }

func (b *Broker) validate() []error {
	faults := append(b.Levels.validate(), b.Rocket.validate()...)
	var urlErr, managementErr error
	b.RabbitURL, urlErr = secret("RABBITMQ_URL", b.RabbitURL, b.RabbitURLFile)
	b.RabbitManagement, managementErr = secret("RABBITMQ_MANAGEMENT_URL", b.RabbitManagement, b.RabbitManagementFile)
	if urlErr == nil && b.Levels.Broker == RabbitMQ && b.RabbitURL == "" {
		urlErr = errors.New("BIDE_RABBITMQ_URL is not set: want amqp://user:password@host:port/vhost, or BIDE_BROKER=none to do without a broker")
	}
	var serversErr error
	if b.Levels.Broker == RocketMQ && len(b.NameServers()) == 0 {
		serversErr = errors.New("BIDE_ROCKETMQ_NAME_SERVERS is not set: want host:port of each name server")
	}
	faults = append(faults, compact(urlErr, managementErr, serversErr)...)
	b.sound = len(faults) == 0
	return faults
}

// Service is what both services have.
type Service struct {
	LogLevel        string        `envconfig:"BIDE_LOG_LEVEL" default:"info" desc:"debug, info, warn or error."`
	LogFormat       string        `envconfig:"BIDE_LOG_FORMAT" default:"text" desc:"text or json."`
	ShutdownTimeout time.Duration `envconfig:"BIDE_SHUTDOWN_TIMEOUT" default:"10s" desc:"How long to finish what runs after SIGTERM, a duration of 1s to 5m."`
	Migrate         bool          `envconfig:"BIDE_MIGRATE" default:"false" desc:"Migrate the ledger at start, as bide migrate does. The database role then owns the schema."`
}

func (s *Service) validate() (faults []error) {
	if _, err := s.Level(); err != nil {
		faults = append(faults, err)
	}
	if s.LogFormat != "text" && s.LogFormat != "json" {
		faults = append(faults, fmt.Errorf("BIDE_LOG_FORMAT=%q: want text or json", s.LogFormat))
	}
	if err := between("SHUTDOWN_TIMEOUT", s.ShutdownTimeout, time.Second, 5*time.Minute); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// Level returns the log level.
func (s *Service) Level() (level slog.Level, err error) {
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return 0, fmt.Errorf("BIDE_LOG_LEVEL=%q: want debug, info, warn or error", s.LogLevel)
	}
	return level, nil
}

// listen checks an address to listen on.
func listen(address string) []error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return []error{fmt.Errorf("BIDE_LISTEN=%q: want host:port, such as 127.0.0.1:9464", address)}
	}
	return nil
}

func between(name string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("BIDE_%s=%s: want %s to %s", name, d, least, most)
	}
	return nil
}

func count(name string, n, most int) error {
	if n < 1 || n > most {
		return fmt.Errorf("BIDE_%s=%d: want 1 to %d", name, n, most)
	}
	return nil
}
