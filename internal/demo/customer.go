package demo

import (
	"math/rand/v2"
	"time"
)

// brink is how close to the deadline a payment is made that means to race it.
const brink = 50 * time.Millisecond

// ending is what a customer means to do about an order.
type ending uint8

const (
	leave  ending = iota // let the deadline pass
	pay                  // pay, before or around the deadline
	extend               // ask for time, and pay after the deadline
)

type line struct{ sku, quantity int32 }

// customer is the plan for one order.
type customer struct {
	// arrives is when the order is placed, from the start of the trade.
	arrives time.Duration
	// delay is the time to pay.
	delay time.Duration
	lines []line

	ending ending
	// asks is when time is asked for, relative to the deadline.
	asks time.Duration
	// pays is when the payment begins, relative to the deadline.
	pays time.Duration
	// ponders is how long the payment's transaction stays open.
	ponders time.Duration
	// cancels says that the payment withdraws the task itself instead of
	// leaving it to the recheck.
	cancels bool
}

// customers draws what will happen, the same for the same seed.
func customers(cfg Config) []customer {
	rng := rand.New(rand.NewPCG(cfg.Seed, 0))
	all := make([]customer, cfg.Orders)
	for i := range all {
		all[i] = draw(rng, cfg)
	}
	return all
}

func draw(rng *rand.Rand, cfg Config) customer {
	c := customer{
		arrives: between(rng, 0, cfg.Duration),
		delay:   between(rng, cfg.MinDelay, cfg.MaxDelay).Truncate(time.Millisecond),
		lines:   make([]line, 1+rng.IntN(4)),
		cancels: rng.IntN(2) == 0,
	}
	// A few round delays, since those are what real shops use.
	if round := c.delay.Truncate(time.Second); rng.IntN(20) == 0 && round >= cfg.MinDelay {
		c.delay = round
	}
	for i := range c.lines {
		c.lines[i] = line{sku: 1 + rng.Int32N(skus), quantity: 1 + rng.Int32N(3)}
	}
	switch rng.IntN(30) {
	case 0:
		c.ending, c.asks, c.pays = extend, between(rng, -c.delay, -2*brink), between(rng, cfg.MinDelay, 2*cfg.MinDelay)
	case 1, 2, 3:
		c.ending, c.pays, c.ponders = pay, between(rng, -brink, brink), between(rng, 0, brink)
	case 4, 5, 6, 7, 8, 9, 10:
		c.ending, c.pays = pay, between(rng, -c.delay, -brink)
	}
	return c
}

// between draws evenly from [from, to]; it returns from when the two are in
// the wrong order.
func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(max(0, int64(to-from))+1))
}
