package main

import (
	"context"
	"time"
)

// measureDrain has tasks that are overdue worked off: by one consumer without a
// broker, and by River.
func measureDrain(ctx context.Context, b *bench) error {
	for range b.repeat {
		ours := newSystem(b.bin, alone)
		if err := b.drain(ctx, ours, ours.prepare, func(ctx context.Context) error { return ours.launch(ctx, "consumer") }); err != nil {
			return err
		}
		peer := &riverPeer{}
		if err := b.drain(ctx, peer, peer.prepare, func(ctx context.Context) error { return peer.client.Start(context.WithoutCancel(ctx)) }); err != nil {
			return err
		}
	}
	return nil
}

// drain notes the rate from the first effect to the last.
func (b *bench) drain(ctx context.Context, c contestant, prepare func(context.Context, *database) error, start func(context.Context) error) error {
	db, err := newDatabase(ctx)
	if err != nil {
		return err
	}
	defer db.drop()
	if err := prepare(ctx, db); err != nil {
		return err
	}
	if err := c.schedule(ctx, 0, sameTime(b.drained, time.Now().Add(-time.Second))); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return err
	}
	if err := start(ctx); err != nil {
		return err
	}
	defer c.stop()
	if err := db.done(ctx, b.drained, 2*time.Minute); err != nil {
		return err
	}
	seconds, err := db.number(ctx, "SELECT extract(epoch FROM max(at) - min(at))::float8 FROM bench.effect")
	if err != nil {
		return err
	}
	b.record.add("drain", c.name(), "tasks/s", float64(b.drained)/seconds)
	return nil
}
