package levels

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Table is a list of fixed delays, ascending; level n is Table[n-1].
type Table []time.Duration

// RocketMQ returns the 18 levels that a RocketMQ broker has unless its
// messageDelayLevel says otherwise.
func RocketMQ() Table {
	const s, m, h = time.Second, time.Minute, time.Hour
	return Table{
		1 * s, 5 * s, 10 * s, 30 * s,
		1 * m, 2 * m, 3 * m, 4 * m, 5 * m, 6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m,
		1 * h, 2 * h,
	}
}

// RabbitMQ returns the nominal delays of the default tiers. Six are enough: a
// task waits in the ledger for whatever a tier does not cover.
func RabbitMQ() Table {
	return Table{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour}
}

// String returns the form that [ParseTable] reads, each delay in its greatest
// whole unit. Delays that are not whole seconds appear as [time.Duration]
// prints them and do not parse.
func (t Table) String() string {
	entries := make([]string, len(t))
	for i, d := range t {
		entries[i] = format(d)
	}
	return strings.Join(entries, " ")
}

func format(d time.Duration) string {
	for _, u := range units {
		if d >= u.length && d%u.length == 0 {
			return strconv.FormatInt(int64(d/u.length), 10) + string(u.symbol)
		}
	}
	return d.String()
}

// Less returns the delays shortened by d, which must not be negative. A broker
// whose delays are free to choose, such as RabbitMQ with its TTLs, is given
// the table less lead and slack: then the window of a level ends at its
// nominal delay, and a task scheduled for exactly that long is sent at once.
// The error names every level of which nothing would be left.
func (t Table) Less(d time.Duration) ([]time.Duration, error) {
	if d < 0 {
		return nil, fmt.Errorf("shorten levels by %s: want 0 or more", d)
	}
	shortened := make([]time.Duration, len(t))
	var f faults
	for i, nominal := range t {
		if nominal <= d {
			f.addf("level %d (%s): want more than %s, which lead and slack take off it", i+1, format(nominal), d)
		}
		shortened[i] = nominal - d
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return shortened, nil
}

// up returns the least delay of the table that is at least d, or 0.
func (t Table) up(d time.Duration) time.Duration {
	for _, nominal := range t {
		if nominal >= d {
			return nominal
		}
	}
	return 0
}
