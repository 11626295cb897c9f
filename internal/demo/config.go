package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/bide-mq/bide"
)

// NoBroker is the Config.Broker with which the sweep is the whole engine.
const NoBroker = "none"

// Config says what to run and against which servers.
type Config struct {
	// DatabaseURL is a postgres:// URL of a server, not of a pooler, whose
	// role may create databases. The demo touches none but its own.
	DatabaseURL string
	// Database is the demo's own, which it drops and makes anew at each run.
	// Defaults to "bide_demo".
	Database string
	// BinDir holds the executables producer and consumer.
	BinDir string
	// Broker is the services' BIDE_BROKER. Defaults to "none".
	Broker string
	// Environment holds KEY=VALUE pairs for the services, such as the
	// broker's address. They inherit nothing else.
	Environment []string

	// Migrate makes Bide's schema in the database at the URL.
	Migrate func(ctx context.Context, databaseURL string) error
	// Purge empties one of the broker's delay queues of the ledger, one that
	// holds at least least and at most most messages, and returns how many
	// were lost. 0 says that no queue qualifies now; it is then asked again.
	// Required where there is a broker, or else LoseAll.
	Purge func(ctx context.Context, ledger bide.LedgerID, least, most int) (int, error)
	// LoseAll kills the broker, deletes all it holds, and starts it again. It
	// is called once, when few tasks are left.
	LoseAll func(ctx context.Context) error
	// Clean removes what the services declared on the broker for the ledger.
	// It is called after they have stopped. Optional.
	Clean func(ctx context.Context, ledger bide.LedgerID) error

	// Orders is how many orders are placed. Defaults to 2,000.
	Orders int
	// Duration is the time over which orders are placed. Defaults to 20 s.
	Duration time.Duration
	// MinDelay and MaxDelay bound the time to pay, drawn in whole
	// milliseconds. They default to 1 s and 25 s.
	MinDelay, MaxDelay time.Duration
	// Grace is how long after the last deadline tasks may take to finish.
	// Defaults to 10 s: the 4 s that Bide promises whatever a broker does, and
	// room for a bad day.
	Grace time.Duration
	// Seed makes the customers' behaviour repeatable. Defaults to 1.
	Seed uint64
}

func (c Config) withDefaults() Config {
	c.Database = cmp.Or(c.Database, "bide_demo")
	c.Broker = cmp.Or(c.Broker, NoBroker)
	c.Orders = cmp.Or(c.Orders, 2000)
	c.Duration = cmp.Or(c.Duration, 20*time.Second)
	c.MinDelay = cmp.Or(c.MinDelay, time.Second)
	c.MaxDelay = cmp.Or(c.MaxDelay, 25*time.Second)
	c.Grace = cmp.Or(c.Grace, 10*time.Second)
	c.Seed = cmp.Or(c.Seed, 1)
	return c
}

func (c Config) validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(c.Migrate != nil, "migrate: missing")
	check(c.Broker == NoBroker || c.Purge != nil || c.LoseAll != nil, "purge: missing, and the broker is %q", c.Broker)
	check(c.Orders >= 1, "orders %d: want at least 1", c.Orders)
	check(c.Duration > 0, "duration %v: want more than 0", c.Duration)
	check(c.MinDelay >= time.Millisecond, "least delay %v: want at least 1ms", c.MinDelay)
	check(c.MinDelay <= c.MaxDelay, "greatest delay %v: want at least the least delay, %v", c.MaxDelay, c.MinDelay)
	check(c.Grace > 0, "grace %v: want more than 0", c.Grace)
	check(databaseNames.MatchString(c.Database), "database %q: want 1 to 63 of a-z, 0-9 and _, no digit first", c.Database)
	if _, err := databaseURL(c.DatabaseURL, c.Database); err != nil {
		faults = append(faults, err)
	}
	for _, name := range []string{producer, consumer} {
		_, err := exec.LookPath(filepath.Join(c.BinDir, name))
		check(err == nil, "executable %s in %q: %w", name, c.BinDir, err)
	}
	return errors.Join(faults...)
}

// databaseNames need no quoting.
var databaseNames = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// databaseURL returns the URL of the named database on the server at raw. Its
// errors do not quote raw, which may hold a password.
func databaseURL(raw, name string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", errors.New("database url: want the form postgres://user:password@host:port/database")
	}
	q := u.Query()
	if cmp.Or(q.Get("database"), q.Get("dbname"), u.Path[min(1, len(u.Path)):]) == name {
		return "", fmt.Errorf("database url: names %s, which the demo drops: want another database of the server, such as postgres", name)
	}
	q.Del("database")
	q.Del("dbname")
	u.RawQuery, u.Path = q.Encode(), "/"+name
	return u.String(), nil
}
