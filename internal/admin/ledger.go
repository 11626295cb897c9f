package admin

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bide-mq/bide"
)

// ledgerEvery is the pause between two looks at the ledger.
const ledgerEvery = 10 * time.Second

// Ledger is what the gauges show.
type Ledger interface {
	// Counts returns the number of live tasks by state.
	Counts(ctx context.Context) (map[bide.State]int, error)
	// OldestOverdue returns how long ago the longest overdue task was due.
	OldestOverdue(ctx context.Context) (time.Duration, error)
}

// LedgerGauges shows the ledger's state, looked up now and then rather than at
// each scrape.
type LedgerGauges struct {
	ledger  Ledger
	tasks   *prometheus.GaugeVec
	overdue prometheus.Gauge
	looked  atomic.Pointer[time.Time]
	log     *slog.Logger
}

// NewLedgerGauges registers the gauges.
func NewLedgerGauges(r *prometheus.Registry, ledger Ledger, log *slog.Logger) *LedgerGauges {
	g := &LedgerGauges{
		ledger:  ledger,
		tasks:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "bide_tasks", Help: "Live tasks by state. WAITING and SENT beyond 100,000 are estimates."}, []string{"state"}),
		overdue: prometheus.NewGauge(prometheus.GaugeOpts{Name: "bide_oldest_overdue_seconds", Help: "How long ago the longest overdue task was due; 0 when none is. Alert on this."}),
		log:     log,
	}
	g.looked.Store(new(time.Now()))
	r.MustRegister(g.tasks, g.overdue, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bide_ledger_age_seconds", Help: "How long ago the ledger was last read, and how old the gauges of tasks are.",
	}, func() float64 { return time.Since(*g.looked.Load()).Seconds() }))
	return g
}

// Run looks until ctx ends.
func (g *LedgerGauges) Run(ctx context.Context) error {
	tick := time.NewTicker(ledgerEvery)
	defer tick.Stop()
	for {
		if err := g.look(ctx); err != nil && ctx.Err() == nil {
			g.log.WarnContext(ctx, "measure the ledger", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (g *LedgerGauges) look(ctx context.Context) error {
	counts, err := g.ledger.Counts(ctx)
	if err != nil {
		return err
	}
	for state, n := range counts {
		g.tasks.WithLabelValues(string(state)).Set(float64(n))
	}
	overdue, err := g.ledger.OldestOverdue(ctx)
	if err != nil {
		return err
	}
	g.overdue.Set(overdue.Seconds())
	g.looked.Store(new(time.Now()))
	return nil
}
