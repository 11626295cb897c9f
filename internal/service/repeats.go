package service

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Of one message, mostRepeats records are logged in repeatPeriod.
const (
	mostRepeats  = 10
	repeatPeriod = 10 * time.Second
)

// repeats leaves out of a log what is repeated too often. While a database is
// away every loop says so several times a second, for as long as it lasts.
// Errors are never left out: each of them is an operator's business.
type repeats struct {
	slog.Handler
	counts *counts
}

func withoutRepeats(h slog.Handler) slog.Handler {
	return repeats{Handler: h, counts: &counts{of: map[string]*count{}}}
}

func (h repeats) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError || r.Level < slog.LevelInfo {
		return h.Handler.Handle(ctx, r)
	}
	passes, leftOut := h.counts.add(r.Message, r.Time)
	if !passes {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the counts: they are of messages, wherever they come from.
func (h repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	return repeats{Handler: h.Handler.WithAttrs(attrs), counts: h.counts}
}

// WithGroup keeps them as well.
func (h repeats) WithGroup(name string) slog.Handler {
	return repeats{Handler: h.Handler.WithGroup(name), counts: h.counts}
}

// counts are by message. Messages are constant texts, so there are few.
type counts struct {
	mu sync.Mutex
	of map[string]*count
}

type count struct {
	began time.Time
	n     int
}

// add counts a message and tells whether it is to be logged, and how many were
// left out before it.
func (c *counts) add(message string, now time.Time) (passes bool, leftOut int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.of[message]
	if last == nil {
		last = &count{began: now}
		c.of[message] = last
	}
	if now.Sub(last.began) >= repeatPeriod {
		leftOut = max(last.n-mostRepeats, 0)
		*last = count{began: now}
	}
	last.n++
	return last.n <= mostRepeats, leftOut
}
