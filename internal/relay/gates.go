package relay

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
)

// gates knows, for each level, how many tasks are in hand and whether the
// level is quarantined.
type gates struct {
	plan []levels.Window
	// window is the most tasks to claim at once for one level. Four times as
	// many may be in hand: one window being confirmed, one ready to follow it,
	// and those being claimed and settled.
	window   int
	observer Observer

	mu     sync.Mutex
	inHand map[int]int
	closed map[int]bool
	// short: the last look found an open level without room.
	short bool
	// slow: the broker has refused lately, so a full claim is no reason to
	// hurry.
	slow  bool
	freed chan struct{} // holds a token when a level that was short has room
}

func newGates(plan levels.Plan, window int, observer Observer) *gates {
	return &gates{
		plan: plan.Windows(), window: window, observer: observer,
		inHand: map[int]int{}, closed: map[int]bool{}, freed: make(chan struct{}, 1),
	}
}

// windows returns the windows of the open levels that have room.
func (g *gates) windows() []bide.Window {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.short = false
	var open []bide.Window
	for _, w := range g.plan {
		if g.closed[w.Level] {
			continue
		}
		room := min(4*g.window-g.inHand[w.Level], g.window)
		if room <= 0 {
			g.short = true
			continue
		}
		open = append(open, bide.Window{Level: w.Level, From: w.From, To: w.To, Limit: room})
	}
	return open
}

// enter counts a claim's tasks in and reports whether one of its windows was
// taken to the limit, so that there is likely more.
func (g *gates) enter(tasks []bide.Claimed, windows []bide.Window) (full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := map[int]int{}
	for _, t := range tasks {
		taken[t.Level]++
		g.inHand[t.Level]++
	}
	for _, w := range windows {
		full = full || taken[w.Level] == w.Limit
	}
	return full && !g.slow
}

// leave counts a batch's tasks out. refused says that some of them go back.
func (g *gates) leave(tasks []bide.Claimed, refused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tasks {
		g.inHand[t.Level]--
	}
	g.slow = refused
	if g.short && !refused {
		select {
		case g.freed <- struct{}{}:
		default:
		}
	}
}

// wait pauses for the period, less where a level that was short has room again.
func (g *gates) wait(ctx context.Context, period time.Duration) {
	timer := time.NewTimer(period)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-g.freed:
	}
}

// close puts a level into quarantine.
func (g *gates) close(level int) { g.set(level, true) }

// open ends a level's quarantine.
func (g *gates) open(level int) { g.set(level, false) }

func (g *gates) set(level int, closed bool) {
	g.mu.Lock()
	changed := g.closed[level] != closed
	g.closed[level] = closed
	g.mu.Unlock()
	if changed {
		g.observer.Quarantined(level, closed)
	}
}

// quarantined returns the closed levels in order.
func (g *gates) quarantined() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	var closed []int
	for level, is := range g.closed {
		if is {
			closed = append(closed, level)
		}
	}
	slices.Sort(closed)
	return closed
}
