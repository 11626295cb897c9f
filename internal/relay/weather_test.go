package relay

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
)

// Whatever happens to its messages, a task is SENT only while a journal row
// names it or a message of it was confirmed.
func TestRelayInAllWeathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			memory := brokertest.NewMemory(threeLevels)
			publisher := memory.Publisher(bide.LedgerID{})
			ctx, cancel := context.WithCancel(context.Background())
			session := make(chan error, 1)
			go func() { session <- publisher.Run(ctx) }()
			fault := brokertest.Sometimes(rapid.Uint64().Draw(t, "seed"), rapid.Float64Range(0, 1).Draw(t, "chance"),
				brokertest.Refuse, brokertest.LoseRequest, brokertest.LoseAnswer, brokertest.Duplicate, brokertest.TimeOut)
			confirmed := &ledgerOfConfirms{FaultyPublisher: brokertest.FaultyPublisher{Publisher: publisher, Fault: fault}, ids: map[int64]bool{}}

			b := newBook(0, 0)
			for range 50 {
				b.add(time.Duration(rapid.IntRange(0, 12_000).Draw(t, "in")) * time.Millisecond)
			}
			r := launch(t, Config{}, b, confirmed)
			defer cancel()
			defer func() { _ = r.stop() }()
			for range 6 {
				pass(2 * time.Second)
				if rapid.Bool().Draw(t, "cut") {
					memory.Cut(bide.LedgerID{})
				}
				b.mu.Lock()
				for id, row := range b.rows {
					require.True(t, !row.sent || confirmed.has(id) || b.names(id), "task %d", id)
				}
				b.mu.Unlock()
			}
			require.NoError(t, r.stop())
			require.Zero(t, r.journalled())
			cancel()
			require.NoError(t, <-session)
		})
	})
}

// names reports whether the journal does. The caller holds the lock.
func (b *book) names(id int64) bool {
	for _, j := range b.batches {
		for _, t := range j.tasks {
			if t.TaskID == id {
				return true
			}
		}
	}
	return false
}

// ledgerOfConfirms remembers whose messages were confirmed.
type ledgerOfConfirms struct {
	brokertest.FaultyPublisher
	mu  sync.Mutex
	ids map[int64]bool
}

func (p *ledgerOfConfirms) Publish(ctx context.Context, sends []bide.Send) []bide.Outcome {
	outcomes := p.FaultyPublisher.Publish(ctx, sends)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, o := range outcomes {
		if o.Status == bide.Confirmed {
			p.ids[sends[i].Message.TaskID] = true
		}
	}
	return outcomes
}

func (p *ledgerOfConfirms) has(id int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[id]
}
