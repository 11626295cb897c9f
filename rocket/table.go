package rocket

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bide-mq/bide/levels"
)

// level is one of the broker's fixed delays.
type level struct {
	delay time.Duration
	// number is what the broker calls it: its place in messageDelayLevel,
	// counted from 1.
	number int
}

// table holds the broker's levels by delay, ascending, each delay once.
type table []level

// parseTable reads a broker's messageDelayLevel. Brokers take any order and
// repetitions; the plan wants the delays ascending, so the table keeps each
// level's number beside it. Of two levels that wait the same the first counts.
func parseTable(text string) (table, error) {
	var t table
	for i, entry := range strings.Fields(text) {
		one, err := levels.ParseTable(entry)
		if err != nil {
			return nil, fmt.Errorf("messageDelayLevel, level %d: %w", i+1, err)
		}
		t = append(t, level{one[0], i + 1})
	}
	if len(t) == 0 {
		return nil, fmt.Errorf(`messageDelayLevel %q: no levels, want delays such as "1s 10s 1m"`, text)
	}
	slices.SortStableFunc(t, func(a, b level) int { return cmp.Compare(a.delay, b.delay) })
	return slices.CompactFunc(t, func(a, b level) bool { return a.delay == b.delay }), nil
}

// delays returns what [bide.Capabilities] wants.
func (t table) delays() []time.Duration {
	delays := make([]time.Duration, len(t))
	for i, l := range t {
		delays[i] = l.delay
	}
	return delays
}
