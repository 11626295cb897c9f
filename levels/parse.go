package levels

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// units of the text form, greatest first. They are the four that RocketMQ's
// messageDelayLevel knows.
//
//nolint:gochecknoglobals // a table that Go cannot make constant
var units = [...]struct {
	symbol byte
	length time.Duration
}{
	{'d', 24 * time.Hour}, {'h', time.Hour}, {'m', time.Minute}, {'s', time.Second},
}

// ParseTable reads delays in the form of RocketMQ's messageDelayLevel, such as
// "1s 10s 1m 2h": whole positive numbers, each with one of the units s, m, h
// and d, separated by white space, ascending. The error names every faulty
// entry with its position, which is also its level. A RocketMQ broker may have
// levels in another order; such a table is refused, since no plan needs it.
func ParseTable(text string) (Table, error) {
	entries := strings.Fields(text)
	if len(entries) == 0 {
		return nil, errors.New(`no levels: want delays such as "1s 10s 1m"`)
	}
	table := make(Table, len(entries))
	var f faults
	var last time.Duration
	var lastLevel int
	for i, entry := range entries {
		d, err := parseEntry(entry)
		if err == nil {
			err = checkAscending(d, last, lastLevel)
		}
		if err != nil {
			f.addf("level %d %.24q: %w", i+1, entry, err)
			continue
		}
		table[i], last, lastLevel = d, d, i+1
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return table, nil
}

func parseEntry(entry string) (time.Duration, error) {
	number, symbol := entry[:len(entry)-1], entry[len(entry)-1]
	unit, err := unitLength(symbol)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(number, 10, 64)
	most := uint64(math.MaxInt64 / unit)
	switch {
	case errors.Is(err, strconv.ErrRange) || n > most:
		return 0, fmt.Errorf("too long, want at most %d%c", most, symbol)
	case err != nil || n == 0:
		return 0, errors.New("want a whole number above 0 before the unit")
	}
	return time.Duration(n) * unit, nil
}

func unitLength(symbol byte) (time.Duration, error) {
	for _, u := range units {
		if u.symbol == symbol {
			return u.length, nil
		}
	}
	if symbol >= '0' && symbol <= '9' {
		return 0, errors.New("no unit, want s, m, h or d after the number")
	}
	return 0, errors.New("unknown unit, want s, m, h or d")
}

func checkAscending(d, last time.Duration, lastLevel int) error {
	switch {
	case d == last:
		return fmt.Errorf("as long as level %d, want each delay once", lastLevel)
	case d < last:
		return fmt.Errorf("shorter than level %d, want ascending delays", lastLevel)
	}
	return nil
}

// faults collects what is wrong with one input, to be reported at once.
type faults []error

func (f *faults) addf(format string, args ...any) {
	*f = append(*f, fmt.Errorf(format, args...))
}

func (f *faults) err() error { return errors.Join(*f...) }
