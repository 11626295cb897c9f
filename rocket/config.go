package rocket

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rocket/internal/remoting"
)

// Mode is how the broker is made to wait.
type Mode string

const (
	// Auto takes timers where the broker has them, and levels elsewhere.
	Auto Mode = "auto"
	// Levels uses the broker's fixed delays, which every version has.
	Levels Mode = "levels"
	// Timers uses timer messages, which 5.x has. A 4.x broker takes them, says
	// so, and delivers at once.
	Timers Mode = "timers"
)

// Config is what the driver needs to know. The zero value of each field but
// NameServers and Ledger means its default.
type Config struct {
	// NameServers are host:port, all of one RocketMQ installation. Names are
	// looked up; IPv6 addresses are in brackets.
	NameServers []string
	// AccessKey and SecretKey sign requests where the servers have access
	// control. Default to none.
	AccessKey, SecretKey string
	// TLS asks for encrypted connections, which Validate refuses: the client
	// library encrypts without checking whom it speaks to, and takes no
	// certificate authority, so that whoever stands between can read and forge.
	TLS bool
	// Namespace separates tenants of one broker. Defaults to none.
	Namespace string
	// Cluster names the brokers' cluster, for name servers that know several.
	// Defaults to the only one.
	Cluster string

	// Prefix opens the names of topic and groups. Defaults to "bide".
	Prefix string
	// Ledger names the ledger, whose short form is part of those names.
	Ledger bide.LedgerID
	// Queues is how many queues the topic gets on each broker, 1 to 64, where
	// the driver makes it. Consumers share queues out, so more consumers than
	// queues leaves some without work. Defaults to 8.
	Queues int

	// Mode defaults to Auto.
	Mode Mode
	// Version stands for the broker's own answer where that is denied, such as
	// 4.9.7 or 5.3; only the first number counts. Defaults to asking.
	Version string
	// Table stands for the broker's messageDelayLevel where asking is denied,
	// in the broker's order. Defaults to asking.
	Table string
	// MaxDelay stands for the broker's timerMaxDelaySec, and for
	// timerWheelEnable, where asking is denied. Defaults to asking.
	MaxDelay time.Duration
	// Horizon is the longest delay that a timer is used for; tasks beyond it
	// wait in the ledger. Defaults to 2 h, or to 10 s less than the broker
	// takes where that is shorter.
	Horizon time.Duration
	// Lead is the usual lag of a delivery. Defaults to 150 ms.
	Lead time.Duration
	// Slack is the width of the relay's windows and must equal the relay's.
	// Defaults to 250 ms.
	Slack time.Duration

	// Window is the most messages unconfirmed at one level, 1 to 4096.
	// Defaults to 256.
	Window int
	// Senders is how many messages are on their way at once, 1 to 1024. On two
	// cores 64 senders reached 5,800 timers/s, 16 had 4,650 and 256 had 7,200.
	// Defaults to 64.
	Senders int
	// ConfirmTimeout is how long the broker may take to confirm, 1 to 15 s.
	// Defaults to 2 s.
	ConfirmTimeout time.Duration
	// Goroutines bounds how many batches are held at once, 1 to 100000.
	// Messages are held up to 1.5 s, each batch by one. Defaults to 4000.
	Goroutines int
	// Batch is the most messages of a batch, 1 to 1024. A batch is
	// acknowledged as a whole. Defaults to 32.
	Batch int
	// DrainTimeout bounds the wait for acknowledgements at the end of
	// Subscribe. Defaults to 10 s.
	DrainTimeout time.Duration
	// DialTimeout bounds connecting and each question that a session begins
	// with. Defaults to 3 s.
	DialTimeout time.Duration
}

const defaultHorizon = 2 * time.Hour

// WithDefaults returns the configuration with zero fields set. Horizon keeps
// its zero, since its default depends on the broker.
func (c Config) WithDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, "bide")
	c.Queues = cmp.Or(c.Queues, 8)
	c.Mode = cmp.Or(c.Mode, Auto)
	c.Lead = cmp.Or(c.Lead, 150*time.Millisecond)
	c.Slack = cmp.Or(c.Slack, levels.DefaultSlack)
	c.Window = cmp.Or(c.Window, 256)
	c.Senders = cmp.Or(c.Senders, 64)
	c.ConfirmTimeout = cmp.Or(c.ConfirmTimeout, 2*time.Second)
	c.Goroutines = cmp.Or(c.Goroutines, 4000)
	c.Batch = cmp.Or(c.Batch, 32)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 10*time.Second)
	c.DialTimeout = cmp.Or(c.DialTimeout, 3*time.Second)
	return c
}

// nameForm is what RocketMQ's TopicValidator lets pass, without '|' and '%',
// which have meanings. 60 characters leave room within its 127.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,60}$`)

// Validate reports everything that is wrong with the configuration at once. It
// expects WithDefaults to have been applied, and never quotes a secret.
func (c Config) Validate() error {
	faults := c.validateAddresses()
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if (c.AccessKey == "") != (c.SecretKey == "") {
		fault("credentials: want both an access key and a secret key, or neither")
	}
	if c.TLS {
		fault("tls: RocketMQ's client library for Go encrypts without verifying the broker's certificate and cannot be made to; put a verifying tunnel (stunnel, a mesh sidecar) beside the service and give its address as the name server's")
	}
	if !nameForm.MatchString(c.Prefix) {
		fault("prefix %q: want 1 to 60 letters, digits, '_' or '-'", c.Prefix)
	}
	if c.Namespace != "" && (!nameForm.MatchString(c.Namespace) || len(c.Namespace) > 30) {
		fault("namespace %q: want up to 30 letters, digits, '_' or '-'", c.Namespace)
	}
	if c.Ledger == (bide.LedgerID{}) {
		fault("ledger: missing, want the ledger's id")
	}
	if c.Mode != Auto && c.Mode != Levels && c.Mode != Timers {
		fault("mode %q: want %q, %q or %q", c.Mode, Auto, Levels, Timers)
	}
	faults = append(faults, c.validateOverrides()...)
	return errors.Join(append(faults, c.validateNumbers()...)...)
}

func (c Config) validateAddresses() []error {
	if len(c.NameServers) == 0 {
		return []error{errors.New("name servers: none, want at least one host:port")}
	}
	var faults []error
	for _, address := range c.NameServers {
		if strings.Contains(address, "://") {
			faults = append(faults, fmt.Errorf("name server %q: want host:port without a scheme; connections are not encrypted", address))
			continue
		}
		host, port, err := net.SplitHostPort(address)
		number, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || portErr != nil || number == 0 {
			faults = append(faults, fmt.Errorf("name server %q: want host:port, such as 10.0.0.7:9876", address))
		}
	}
	return faults
}

func (c Config) validateOverrides() []error {
	var faults []error
	if c.Version != "" {
		if _, err := ordinalOf(c.Version); err != nil {
			faults = append(faults, err)
		}
	}
	if c.Table != "" {
		if _, err := parseTable(c.Table); err != nil {
			faults = append(faults, fmt.Errorf("table: %w", err))
		}
	}
	if c.MaxDelay < 0 || c.MaxDelay%time.Second != 0 {
		faults = append(faults, fmt.Errorf("max delay %s: want whole seconds above 0", c.MaxDelay))
	}
	if c.Horizon != 0 && c.Horizon < leastHorizon {
		faults = append(faults, fmt.Errorf("horizon %s: want at least %s", c.Horizon, leastHorizon))
	}
	return faults
}

func (c Config) validateNumbers() []error {
	var faults []error
	count := func(name string, n, most int) {
		if n < 1 || n > most {
			faults = append(faults, fmt.Errorf("%s %d: want 1 to %d", name, n, most))
		}
	}
	duration := func(name string, d, least, most time.Duration) {
		if d < least || d > most || d%time.Millisecond != 0 {
			faults = append(faults, fmt.Errorf("%s %s: want %s to %s in whole milliseconds", name, d, least, most))
		}
	}
	count("queues", c.Queues, 64)
	count("window", c.Window, 4096)
	count("senders", c.Senders, 1024)
	count("goroutines", c.Goroutines, 100_000)
	count("batch", c.Batch, 1024)
	duration("lead", c.Lead, 0, time.Second)
	duration("slack", c.Slack, time.Millisecond, time.Second)
	duration("confirm timeout", c.ConfirmTimeout, time.Second, 15*time.Second)
	duration("drain timeout", c.DrainTimeout, time.Millisecond, time.Hour)
	duration("dial timeout", c.DialTimeout, 100*time.Millisecond, time.Minute)
	return faults
}

// String names the servers and the topic and keeps the keys to itself.
func (c Config) String() string {
	return fmt.Sprintf("rocket %s topic=%s mode=%s", c.endpoint(), c.Topic(), c.Mode)
}

// GoString does for %#v what String does for the other verbs.
func (c Config) GoString() string { return c.String() }

// endpoint is the installation's address for people.
func (c Config) endpoint() string { return "rocketmq " + strings.Join(c.NameServers, ",") }

func (c Config) credentials() remoting.Credentials {
	return remoting.Credentials{AccessKey: c.AccessKey, SecretKey: c.SecretKey}
}
