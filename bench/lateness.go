package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// curve is a contestant's lateness in one run at the judged rate: milliseconds
// at shares of 0, 0.5 %, ..., 100 %.
type curve struct {
	Contestant string    `json:"contestant"`
	Late       []float64 `json:"late_ms"`
}

const curvePoints = 200

// measureLateness runs every contestant at every rate.
func measureLateness(ctx context.Context, b *bench) error {
	for _, rate := range b.rates {
		for _, make := range b.contestants() {
			repeat := 1
			_, ours := make().(*system)
			switch {
			case rate == judgedRate && ours:
				repeat = b.repeat
			case rate == judgedRate:
				repeat = b.peers
			}
			for range repeat {
				if err := b.lateness(ctx, make(), rate); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// contestants returns makers, since each runs several times.
func (b *bench) contestants() []func() contestant {
	var all []func() contestant
	for _, label := range []string{quorum, classic, timers, levels4, alone} {
		all = append(all, func() contestant { return newSystem(b.bin, label) })
	}
	return append(all,
		func() contestant { return &riverPeer{} },
		func() contestant { return &asynqPeer{} },
		func() contestant { return &watermillPeer{} },
		func() contestant { return &bareRocket{} },
		func() contestant { return &bareRocket{levels: true} },
		func() contestant { return &bareRabbit{queueType: "quorum"} },
	)
}

// latenessOf names a measurement at a rate.
func latenessOf(rate int) string { return fmt.Sprintf("lateness at %d/s", rate) }

// lateness runs one contestant once.
func (b *bench) lateness(ctx context.Context, c contestant, rate int) error {
	return running(ctx, c, func(db *database) error { return b.latenessOn(ctx, db, c, rate) })
}

// latenessOn measures a contestant that runs.
func (b *bench) latenessOn(ctx context.Context, db *database, c contestant, rate int) error {
	n, err := place(ctx, c, rate, b.load)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name(), err)
	}
	unfinished := keeper(c, db).done(ctx, n, mostDelay+b.load+10*time.Second)
	late, err := keeper(c, db).lateness(ctx)
	if err != nil {
		return err
	}
	if unfinished != nil {
		// What had no effect in time is as late as the wait was.
		late = append(late, slices.Repeat([]float64{float64((mostDelay + b.load).Milliseconds())}, n-len(late))...)
	}
	b.describe(latenessOf(rate), c, late)
	if rate == judgedRate {
		b.record.draw(c.name(), late)
	}
	return nil
}

// describe notes percentiles. The error is how far from the due time an effect
// was, in either direction: one that comes early is no better than one that
// comes late by as much.
func (b *bench) describe(measurement string, c contestant, late []float64) {
	add := func(figure string, value float64) { b.record.add(measurement, c.name(), figure, value) }
	add("p50 ms", at(late, .5))
	add("p99 ms", at(late, .99))
	add("max ms", at(late, 1))
	early, _ := slices.BinarySearch(late, 0)
	add("early", float64(early))
	off := make([]float64, len(late))
	for i, ms := range late {
		off[i] = math.Abs(ms)
	}
	slices.Sort(off)
	add("error p99 ms", at(off, .99))
	if s, ours := c.(*system); ours {
		for _, p := range s.processes {
			add(p.name+" MiB", p.most())
		}
	}
}

// at is a quantile of ascending values.
func at(ascending []float64, share float64) float64 {
	if len(ascending) == 0 {
		return math.NaN()
	}
	return ascending[int(share*float64(len(ascending)-1))]
}

// draw keeps a contestant's first curve.
func (r *record) draw(contestant string, late []float64) {
	if slices.ContainsFunc(r.Curves, func(c curve) bool { return c.Contestant == contestant }) || len(late) == 0 {
		return
	}
	points := make([]float64, curvePoints+1)
	for i := range points {
		points[i] = at(late, float64(i)/curvePoints)
	}
	r.Curves = append(r.Curves, curve{contestant, points})
}
