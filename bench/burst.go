package main

import (
	"context"
	"time"
)

const rawPipeline = "raw pipeline"

// measureBurst compares how fast many tasks that are due at one instant have
// their effects with how fast as many bare messages pass through a delay queue.
func measureBurst(ctx context.Context, b *bench) error {
	for range b.repeat {
		rate, err := b.rawBurst(ctx)
		if err != nil {
			return err
		}
		b.record.add("burst", rawPipeline, "tasks/s", rate)
		if err := b.instant(ctx, "burst", newSystem(b.bin, quorum), b.messages); err != nil {
			return err
		}
	}
	return nil
}

// rawBurst is the rate from the first arrival to the last.
func (b *bench) rawBurst(ctx context.Context) (float64, error) {
	raw := &bareRabbit{queueType: "quorum"}
	if err := raw.start(ctx, nil); err != nil {
		return 0, err
	}
	defer raw.stop()
	began := time.Now()
	if err := raw.schedule(ctx, 0, make([]time.Time, b.messages)); err != nil {
		return 0, err
	}
	if err := raw.done(ctx, b.messages, time.Minute); err != nil {
		return 0, err
	}
	return float64(b.messages) / (time.Since(began) - bareTTL).Seconds(), nil
}

// instant places tasks due at one instant, and notes the rate from then to the
// last effect, the lateness, and the services' memory.
func (b *bench) instant(ctx context.Context, measurement string, s *system, n int) error {
	return running(ctx, s, func(db *database) error { return b.drainInstant(ctx, measurement, s, db, n) })
}

// drainInstant measures a system that runs.
func (b *bench) drainInstant(ctx context.Context, measurement string, s *system, db *database, n int) error {
	const chunk = 10_000
	// Inserting takes about 30 s per million, twice that when it goes badly.
	due := time.Now().Add(mostDelay + time.Duration(n)*60*time.Microsecond).Truncate(time.Second)
	for first := 0; first < n; first += chunk {
		if err := s.schedule(ctx, int64(first), sameTime(min(chunk, n-first), due)); err != nil {
			return err
		}
	}
	if err := db.done(ctx, n, time.Until(due)+time.Minute+time.Duration(n)*time.Millisecond/2); err != nil {
		return err
	}
	late, err := db.lateness(ctx)
	if err != nil {
		return err
	}
	b.record.add(measurement, s.name(), "tasks/s", float64(n)/(at(late, 1)/1000))
	b.describe(measurement, s, late)
	return nil
}

// measureMidnight has very many tasks due at one instant: without a broker, and
// a tenth of them through it.
func measureMidnight(ctx context.Context, b *bench) error {
	if err := b.instant(ctx, "midnight", newSystem(b.bin, alone), b.midnight); err != nil {
		return err
	}
	return b.instant(ctx, "midnight", newSystem(b.bin, quorum), b.orders)
}
