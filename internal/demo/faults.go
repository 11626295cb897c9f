package demo

import (
	"context"
	"fmt"
	"time"
)

// crash kills a consumer and starts another in its place.
func (d *demo) crash(ctx context.Context, at time.Time) error {
	if !sleepUntil(ctx, at) {
		return nil
	}
	if err := d.services.kill("consumer-2"); err != nil {
		return err
	}
	d.tell.say("killed consumer-2 with SIGKILL")
	if err := d.services.start(ctx, consumer, "consumer-3"); err != nil {
		return err
	}
	d.tell.say("consumer-3 took its place")
	return nil
}

// lose has messages lost by the broker: enough of them to see the sweep work,
// few enough to leave most of the work to the broker. It asks until a queue
// with such a number of messages is found.
func (d *demo) lose(ctx context.Context, from, until time.Time) error {
	least, most := max(1, d.Orders/200), max(1, d.Orders/20)
	for at := from; at.Before(until); at = time.Now().Add(lookEvery) {
		if !sleepUntil(ctx, at) {
			return nil
		}
		n, err := d.Purge(ctx, d.ledger, least, most)
		if err != nil {
			return fmt.Errorf("purge a queue: %w", err)
		}
		if n > 0 {
			d.tell.say("purged a delay queue: %d messages are lost for good, the sweep has to close their orders", n)
			return nil
		}
	}
	return fmt.Errorf("purge a queue: none held between %d and %d messages", least, most)
}

// loseAll has the broker lose everything, once no more tasks are left than the
// sweep may close.
func (d *demo) loseAll(ctx context.Context, from time.Time) error {
	most := max(1, d.Orders/14)
	for at := from; sleepUntil(ctx, at); at = time.Now().Add(lookEvery) {
		now, err := d.shop.tally(ctx)
		if err != nil {
			return err
		}
		if now.tasks > most {
			continue
		}
		d.tell.say("killed the broker and deleted its store: the messages of %d tasks are lost for good", now.tasks)
		if err := d.LoseAll(ctx); err != nil {
			return fmt.Errorf("break the broker: %w", err)
		}
		d.tell.say("the broker is back, empty")
		return nil
	}
	return nil
}
