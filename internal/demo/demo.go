package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
)

// lookEvery is the period at which the shop is asked how far it is, and the
// broker whether a queue is worth a purge.
const lookEvery = 250 * time.Millisecond

// Run trades, plants faults, and audits; the package comment says how. It
// writes to out what happens, the audit's line last. The error is not nil when
// the run could not be carried out, and also when the audit found a fault; in
// that case the audit is complete. When ctx ends, Run stops what it started.
func Run(ctx context.Context, cfg Config, out io.Writer) (Audit, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return Audit{}, err
	}
	target, err := createDatabase(ctx, cfg.DatabaseURL, cfg.Database)
	if err != nil {
		return Audit{}, err
	}
	if err := cfg.Migrate(ctx, target); err != nil {
		return Audit{}, fmt.Errorf("migrate: %w", err)
	}
	shop, err := openShop(ctx, target)
	if err != nil {
		return Audit{}, err
	}
	defer shop.db.Close()
	services, err := newServices(cfg, target)
	if err != nil {
		return Audit{}, fmt.Errorf("prepare the services: %w", err)
	}
	defer services.stop() //nolint:errcheck // for panics: every other way out has stopped them
	d := &demo{Config: cfg, shop: shop, services: services, tell: newReporter(out, cfg.Orders)}
	return d.run(ctx, out)
}

// demo is one run under way.
type demo struct {
	Config
	shop     *shop
	services *services
	ledger   bide.LedgerID
	tell     *reporter
}

func (d *demo) run(ctx context.Context, out io.Writer) (Audit, error) {
	err := d.operate(ctx)
	d.tell.done()
	stopped := d.services.stop()
	if err == nil { // a service that was still starting may not stop cleanly
		err = stopped
	}
	err = errors.Join(err, d.clean(ctx))
	if ctx.Err() != nil {
		return Audit{}, errors.Join(context.Cause(ctx), d.services.tidy())
	}
	if err != nil {
		d.services.explain(out)
		return Audit{}, err
	}
	result, err := audit(ctx, d.shop.db, d.Broker == NoBroker)
	if err != nil {
		return Audit{}, err
	}
	verdict := result.verdict(d.Config)
	d.epilogue(out, verdict)
	_, err = fmt.Fprintln(out, result)
	return result, errors.Join(verdict, err)
}

// operate runs from the services' start to the end of the last task, or to the
// end of a service that nobody asked to end.
func (d *demo) operate(ctx context.Context) (err error) {
	if d.ledger, err = d.shop.ledger(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.services.lost = cancel
	if err = d.startServices(ctx); err == nil {
		err = d.open(ctx)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause // what was cut short by it says less
	}
	return err
}

func (d *demo) startServices(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.services.start(ctx, producer, producer) })
	g.Go(func() error { return d.services.start(ctx, consumer, "consumer-1") })
	g.Go(func() error { return d.services.start(ctx, consumer, "consumer-2") })
	if err := g.Wait(); err != nil {
		return err
	}
	d.tell.say("a producer and two consumers are ready, broker: %s", d.Broker)
	return nil
}

// open lets the customers in and returns when the last task is finished.
func (d *demo) open(ctx context.Context) error {
	opened := time.Now()
	traded := make(chan struct{})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(traded)
		return d.trade(ctx, opened)
	})
	g.Go(func() error { return d.watch(ctx, traded, opened.Add(d.Duration+d.MaxDelay+d.Grace)) })
	return g.Wait()
}

// trade runs the customers and the faults until the last of them is done.
func (d *demo) trade(ctx context.Context, opened time.Time) error {
	d.tell.say("placing %d orders over %v, each to be paid within %v to %v", d.Orders, d.Duration, d.MinDelay, d.MaxDelay)
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range customers(d.Config) {
		g.Go(func() error { return d.shop.serve(ctx, c, opened) })
	}
	g.Go(func() error { return d.crash(ctx, opened.Add(d.Duration/2)) })
	switch {
	case d.LoseAll != nil:
		g.Go(func() error { return d.loseAll(ctx, opened.Add(d.Duration)) })
	case d.Broker != NoBroker:
		g.Go(func() error { return d.lose(ctx, opened.Add(d.Duration*3/10), opened.Add(d.Duration)) })
	}
	return g.Wait()
}

// watch reports progress until nothing is left to do, or until the limit: then
// the audit says what is missing.
func (d *demo) watch(ctx context.Context, traded <-chan struct{}, limit time.Time) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		now, err := d.shop.tally(ctx)
		if err != nil {
			return err
		}
		d.tell.progress(now)
		select {
		case <-traded:
			if now.finished() || time.Now().After(limit) {
				return nil
			}
		default:
		}
	}
}

// clean leaves the broker as it was found. It works for an interrupted run too.
func (d *demo) clean(ctx context.Context) error {
	if d.Clean == nil || d.ledger == (bide.LedgerID{}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := d.Clean(ctx, d.ledger); err != nil {
		return fmt.Errorf("clean up the broker: %w", err)
	}
	return nil
}

// epilogue closes the story, with the logs where it ended badly.
func (d *demo) epilogue(out io.Writer, verdict error) {
	d.tell.say("%d tasks were cancelled, %d payments came too late and were refused",
		d.shop.cancelled.Load(), d.shop.late.Load())
	d.tell.say("the tables stay in the database %s until the next run", d.Database)
	if verdict != nil {
		d.services.explain(out)
		return
	}
	if err := d.services.tidy(); err != nil {
		d.tell.say("the services' logs could not be removed: %v", err)
	}
}
