package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// bare measures a broker's own delay with its own client: lateness of arrivals
// at the same rate, without ledger, hold or effect. Some arrive early by that
// measure where the delay is a fixed one that started early.
type bare struct {
	mu   sync.Mutex
	late []float64
}

// arrived takes a message that was due at the time, in the moment it arrives.
func (b *bare) arrived(due time.Time) {
	late := time.Since(due).Seconds() * 1000
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late = append(b.late, late)
}

func (b *bare) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.late)
}

// figures are the percentiles of what has arrived.
func (b *bare) figures(name string) []figure {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.late) == 0 {
		return nil
	}
	slices.Sort(b.late)
	at := func(share float64) float64 { return b.late[int(share*float64(len(b.late)-1))] }
	return []figure{{name + "_p50_ms", at(.5)}, {name + "_p99_ms", at(.99)}, {name + "_max_ms", at(1)}}
}

// paced calls send at the rate for the time, from as many places as it takes,
// each with a due time of 3 to 8 s ahead.
func paced(ctx context.Context, rate int, load time.Duration, send func(due time.Time) error) error {
	const places = 64
	work := make(chan time.Time, rate)
	failed := make(chan error, places)
	var senders sync.WaitGroup
	for range places {
		senders.Go(func() {
			for due := range work {
				if err := send(due); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	began, sent := time.Now(), 0
	for total := int(float64(rate) * load.Seconds()); sent < total && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		for want := min(int(time.Since(began).Seconds()*float64(rate)), total); sent < want; sent++ {
			work <- time.Now().Add(3*time.Second + time.Duration(rand.Int64N(int64(5*time.Second))))
		}
	}
	close(work)
	senders.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return ctx.Err()
	}
}
