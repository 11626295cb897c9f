package rocket

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// lineage names the consumers that one worker has one after the other, so that
// whoever sees two of them in a group knows which has been replaced.
//
// A broker may go on listing a consumer that has ended. It handles what a client
// says of itself and the end of that client's connection on different threads,
// and when it does so in the wrong order it has a consumer without a connection,
// which it keeps for two minutes. The queues of such a consumer stand still.
type lineage struct {
	worker string
	births atomic.Uint64
}

func newLineage(cfg Config) *lineage { return &lineage{worker: cfg.instance("worker")} }

// next names a consumer.
func (l *lineage) next() string { return fmt.Sprintf("%s-%d", l.worker, l.births.Add(1)) }

// living leaves out the clients that another in the list has replaced. All who
// have the same list keep the same ones, in the same order; strangers stay.
func living(clients []string) []string {
	newest := map[string]uint64{}
	for _, client := range clients {
		worker, birth := descent(client)
		newest[worker] = max(newest[worker], birth)
	}
	var left []string
	for _, client := range clients {
		if worker, birth := descent(client); birth == newest[worker] {
			left = append(left, client)
		}
	}
	return left
}

// descent splits a client's id. One that no lineage has named is a worker of
// its own.
func descent(client string) (worker string, birth uint64) {
	at := strings.LastIndexByte(client, '-')
	if !strings.Contains(client, "@bide-worker-") || at < 0 {
		return client, 0
	}
	birth, err := strconv.ParseUint(client[at+1:], 10, 64)
	if err != nil {
		return client, 0
	}
	return client[:at], birth
}
