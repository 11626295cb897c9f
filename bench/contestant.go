package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// contestant does Bide's job, or the part of it that a broker does alone.
type contestant interface {
	name() string
	start(ctx context.Context, db *database) error
	// schedule hands over tasks that are due at the times, numbered from first.
	schedule(ctx context.Context, first int64, due []time.Time) error
	stop()
}

// running calls f while a contestant runs on a database of its own.
func running(ctx context.Context, c contestant, f func(*database) error) error {
	db, err := newDatabase(ctx)
	if err != nil {
		return err
	}
	defer db.drop()
	if err := c.start(ctx, db); err != nil {
		return fmt.Errorf("%s: %w", c.name(), err)
	}
	defer c.stop()
	return f(db)
}

// timekeeper is a contestant that measures by itself, having no effect in the
// database.
type timekeeper interface {
	done(ctx context.Context, n int, most time.Duration) error
	lateness(ctx context.Context) ([]float64, error)
}

// keeper is who knows a contestant's lateness.
func keeper(c contestant, db *database) timekeeper {
	if own, ok := c.(timekeeper); ok {
		return own
	}
	return db
}

// tick is the period in which tasks are placed; each makes its share of the rate.
const tick = 20 * time.Millisecond

// Tasks are due this much later, at a random microsecond.
const (
	leastDelay = 2 * time.Second
	mostDelay  = 6 * time.Second
)

// place schedules tasks at a rate and returns how many.
func place(ctx context.Context, c contestant, rate int, load time.Duration) (placed int, err error) {
	total := int(float64(rate) * load.Seconds())
	began := time.Now()
	for placed < total {
		want := min(int(time.Since(began).Seconds()*float64(rate))+1, total)
		if want > placed {
			if err := c.schedule(ctx, int64(placed), randomTimes(want-placed)); err != nil {
				return placed, err
			}
			placed = want
		}
		select {
		case <-ctx.Done():
			return placed, ctx.Err()
		case <-time.After(tick):
		}
	}
	return placed, nil
}

func randomTimes(n int) []time.Time {
	due := make([]time.Time, n)
	for i := range due {
		due[i] = time.Now().Add(leastDelay + rand.N(mostDelay-leastDelay)).Truncate(time.Microsecond)
	}
	return due
}

// sameTime is many tasks' due time.
func sameTime(n int, at time.Time) []time.Time {
	due := make([]time.Time, n)
	for i := range due {
		due[i] = at.Truncate(time.Microsecond)
	}
	return due
}

// clock is a timekeeper in memory: when arrivals came, by this process's clock.
type clock struct {
	mu   sync.Mutex
	late []float64
}

// arrived takes a message that was due at the time, in the moment it arrives.
func (c *clock) arrived(due time.Time) {
	late := time.Since(due).Seconds() * 1000
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = append(c.late, late)
}

func (c *clock) done(ctx context.Context, n int, most time.Duration) error {
	return poll(ctx, most, "the bare messages", func() (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.late) >= n, nil
	})
}

func (c *clock) lateness(context.Context) ([]float64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.late)), nil
}
