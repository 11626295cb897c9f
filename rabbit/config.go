package rabbit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
)

// QueueType is the kind of queue that tiers and the delivery queue are.
type QueueType string

const (
	// Quorum queues are replicated and dead-letter at least once: an expired
	// message leaves its tier only when the delivery queue has it.
	Quorum QueueType = "quorum"
	// Classic queues dead-letter at most once: a message that expires while
	// the delivery queue cannot take it is lost, and the sweep finds its row.
	Classic QueueType = "classic"
)

// other returns the type that is not t.
func (t QueueType) other() QueueType {
	if t == Quorum {
		return Classic
	}
	return Quorum
}

// Config is what the driver needs to know. The zero value of each field but
// URL and Ledger means its default.
type Config struct {
	// URL names the broker, the user and the virtual host:
	// amqp://user:password@host:port/vhost, or amqps:// for TLS. Reserved
	// characters are percent-encoded. The query may hold heartbeat,
	// channel_max and auth_mechanism, and nothing else.
	URL string
	// TLS applies to an amqps URL.
	TLS TLS
	// ManagementURL is the base of the broker's management API,
	// http://user:password@host:15672. Policies and queues are checked through
	// it; without it only what AMQP shows is checked. Defaults to none.
	ManagementURL string

	// Prefix opens every queue name. Defaults to "bide".
	Prefix string
	// Ledger names the ledger, whose short form is part of every queue name.
	Ledger bide.LedgerID
	// QueueType is the type of every queue. Defaults to Quorum.
	QueueType QueueType
	// Tiers are the nominal delays, ascending, in whole milliseconds. The time
	// to live of a tier's queue is its nominal delay less Lead and Slack.
	// Defaults to levels.RabbitMQ: 1s 10s 1m 10m 30m 2h.
	Tiers levels.Table
	// Lead is the usual lag of a delivery. Defaults to 100 ms.
	Lead time.Duration
	// Slack is the width of the relay's windows and must equal the relay's.
	// Defaults to 250 ms.
	Slack time.Duration

	// Window is the most messages unconfirmed at one level, at most 256: with
	// 400 in flight to a queue that does not answer, RabbitMQ's credit flow
	// stops the whole connection. Defaults to 256.
	Window int
	// ConfirmTimeout is how long the broker may take to confirm, 1 to 15 s.
	// Defaults to 5 s.
	ConfirmTimeout time.Duration
	// Consumers is the number of channels that consume, 1 to 64. Consumers
	// times Prefetch must exceed the peak rate times the time that a message
	// is held, else held messages keep due ones waiting. Defaults to 2.
	Consumers int
	// Prefetch is the most unacknowledged messages of one consumer, 1 to 2000:
	// quorum queues cap it there. Defaults to 2000.
	Prefetch int
	// DrainTimeout bounds the wait for acknowledgements at the end of
	// Subscribe. Defaults to 10 s.
	DrainTimeout time.Duration
	// DialTimeout bounds connecting, TLS and the AMQP handshake together.
	// Defaults to 5 s.
	DialTimeout time.Duration
	// Heartbeat is the interval of AMQP heartbeats in whole seconds; a
	// connection that stays silent for three of them is closed. Defaults to
	// 2 s.
	Heartbeat time.Duration
}

// WithDefaults returns the configuration with zero fields set.
func (c Config) WithDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, "bide")
	c.QueueType = cmp.Or(c.QueueType, Quorum)
	if c.Tiers == nil {
		c.Tiers = levels.RabbitMQ()
	}
	c.Lead = cmp.Or(c.Lead, 100*time.Millisecond)
	c.Slack = cmp.Or(c.Slack, 250*time.Millisecond)
	c.Window = cmp.Or(c.Window, maxWindow)
	c.ConfirmTimeout = cmp.Or(c.ConfirmTimeout, 5*time.Second)
	c.Consumers = cmp.Or(c.Consumers, 2)
	c.Prefetch = cmp.Or(c.Prefetch, maxPrefetch)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 10*time.Second)
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 2*time.Second)
	return c
}

const (
	maxWindow   = 256
	maxPrefetch = 2000
	// maxTTL is the longest x-message-ttl that RabbitMQ accepts, ten years
	// (rabbit_misc:check_expiry).
	maxTTL = 315_360_000_000 * time.Millisecond
)

// prefixForm keeps names readable in consoles and valid in policy patterns;
// 100 characters leave room for the rest within AMQP's 255 bytes.
var prefixForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$`)

// Validate reports everything that is wrong with the configuration at once. It
// expects WithDefaults to have been applied, and never quotes a password.
func (c Config) Validate() error {
	_, urlErr := c.uri()
	_, ttlErr := c.ttls()
	_, managementErr := c.managementBase()
	faults := []error{urlErr, managementErr, c.validateTLS(), ttlErr}
	if c.Ledger == (bide.LedgerID{}) {
		faults = append(faults, errors.New("ledger: missing, want the ledger's id"))
	}
	if !prefixForm.MatchString(c.Prefix) {
		faults = append(faults, fmt.Errorf("prefix %q: want 1 to 100 letters, digits, '_', '-' or '.', not starting with '.'", c.Prefix))
	}
	if len(c.Prefix) >= 4 && c.Prefix[:4] == "amq." {
		faults = append(faults, fmt.Errorf("prefix %q: names that begin with amq. are the broker's own", c.Prefix))
	}
	if c.QueueType != Quorum && c.QueueType != Classic {
		faults = append(faults, fmt.Errorf("queue type %q: want %q or %q", c.QueueType, Quorum, Classic))
	}
	return errors.Join(append(faults, c.validateNumbers()...)...)
}

func (c Config) validateNumbers() []error {
	var faults []error
	count := func(name string, n, most int) {
		if n < 1 || n > most {
			faults = append(faults, fmt.Errorf("%s %d: want 1 to %d", name, n, most))
		}
	}
	duration := func(name string, d, least, most, unit time.Duration) {
		if d < least || d > most || d%unit != 0 {
			faults = append(faults, fmt.Errorf("%s %s: want %s to %s in whole steps of %s", name, d, least, most, unit))
		}
	}
	count("window", c.Window, maxWindow)
	count("consumers", c.Consumers, 64)
	count("prefetch", c.Prefetch, maxPrefetch)
	duration("lead", c.Lead, 0, time.Second, time.Millisecond)
	duration("slack", c.Slack, time.Millisecond, time.Second, time.Millisecond)
	duration("confirm timeout", c.ConfirmTimeout, time.Second, 15*time.Second, time.Millisecond)
	duration("drain timeout", c.DrainTimeout, time.Millisecond, time.Hour, time.Millisecond)
	duration("dial timeout", c.DialTimeout, 100*time.Millisecond, time.Minute, time.Millisecond)
	duration("heartbeat", c.Heartbeat, time.Second, math.MaxUint16*time.Second, time.Second)
	return faults
}

// ttls returns the time to live of each tier, ascending.
func (c Config) ttls() ([]time.Duration, error) {
	if len(c.Tiers) == 0 {
		return nil, errors.New("tiers: none, want at least one delay")
	}
	ttls, err := c.Tiers.Less(max(0, c.Lead+c.Slack))
	if err != nil {
		return nil, fmt.Errorf("tiers: %w", err)
	}
	var faults []error
	last := time.Duration(0)
	for i, ttl := range ttls {
		switch {
		case ttl%time.Millisecond != 0:
			faults = append(faults, fmt.Errorf("tier %d (%s): want whole milliseconds", i+1, c.Tiers[i]))
		case ttl > maxTTL:
			faults = append(faults, fmt.Errorf("tier %d (%s): want at most %s, the broker's limit", i+1, c.Tiers[i], maxTTL))
		case ttl-last <= c.Slack:
			faults = append(faults, fmt.Errorf("tier %d (%s): want ascending delays more than the slack (%s) apart", i+1, c.Tiers[i], c.Slack))
		}
		last = ttl
	}
	return ttls, errors.Join(faults...)
}

// String names the broker and the queues and keeps the password to itself.
func (c Config) String() string {
	return fmt.Sprintf("rabbit %s prefix=%s ledger=%s type=%s", c.endpoint(), c.Prefix, c.Ledger.Short(), c.QueueType)
}

// GoString does for %#v what String does for the other verbs.
func (c Config) GoString() string { return c.String() }

// uri reads URL. A URL that does not parse is not quoted, not even in part: a
// password with an unescaped reserved character turns up anywhere in it.
func (c Config) uri() (amqp.URI, error) {
	uri, err := amqp.ParseURI(c.URL)
	if err != nil {
		return uri, errors.New("url: not an AMQP URL, want amqp://user:password@host:port/vhost or amqps://… with reserved characters percent-encoded")
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return uri, errors.New("url: not a URL")
	}
	for parameter := range u.Query() {
		switch parameter {
		case "heartbeat", "channel_max", "auth_mechanism":
		default:
			return uri, fmt.Errorf("url: parameter %q is not supported, want the driver's own settings for TLS and time-outs", parameter)
		}
	}
	return uri, nil
}

// endpoint is the broker's address for people: no user, no password.
func (c Config) endpoint() string {
	uri, err := c.uri()
	if err != nil {
		return "(invalid url)"
	}
	u := url.URL{Scheme: uri.Scheme, Host: fmt.Sprintf("%s:%d", uri.Host, uri.Port), Path: "/" + strings.TrimPrefix(uri.Vhost, "/")}
	return u.String()
}
