package admin

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/relay"
	"github.com/bide-mq/bide/internal/worker"
)

// NewRegistry returns a registry with the Go runtime's and the process's own
// metrics.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// WatchSession exposes a driver's session as bide_broker_session: 0 down,
// 1 blocked, 2 up.
func WatchSession(r *prometheus.Registry, session func() bide.Session) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bide_broker_session",
		Help: "State of the broker session: 0 down, 1 blocked by the broker, 2 up.",
	}, func() float64 { return float64(session().State) }))
}

// WatchHeld exposes the number of tasks held in memory.
func WatchHeld(r *prometheus.Registry, held func() int) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bide_held_tasks",
		Help: "Tasks that have arrived and wait in memory for their time.",
	}, func() float64 { return float64(held()) }))
}

// RelayMetrics counts what a relay does.
type RelayMetrics struct {
	claimed, recovered prometheus.Counter
	published          *prometheus.CounterVec
	quarantined        *prometheus.GaugeVec
}

var _ relay.Observer = (*RelayMetrics)(nil)

// NewRelayMetrics registers a relay's metrics.
func NewRelayMetrics(r *prometheus.Registry) *RelayMetrics {
	m := &RelayMetrics{
		claimed:   prometheus.NewCounter(prometheus.CounterOpts{Name: "bide_relay_claimed_total", Help: "Tasks taken from the ledger for the broker."}),
		recovered: prometheus.NewCounter(prometheus.CounterOpts{Name: "bide_relay_recovered_total", Help: "Tasks given back for relays that died."}),
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bide_relay_published_total",
			Help: "Messages by level (0 undelayed, -1 timer) and fate: confirmed, refused, unknown.",
		}, []string{"level", "status"}),
		quarantined: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bide_relay_level_quarantined",
			Help: "1 while a level does not confirm and its tasks take other levels.",
		}, []string{"level"}),
	}
	r.MustRegister(m.claimed, m.recovered, m.published, m.quarantined)
	return m
}

// Claimed counts tasks taken from the ledger.
func (m *RelayMetrics) Claimed(tasks int) { m.claimed.Add(float64(tasks)) }

// Recovered counts tasks given back for dead relays.
func (m *RelayMetrics) Recovered(tasks int) { m.recovered.Add(float64(tasks)) }

// Published counts messages by level and fate.
func (m *RelayMetrics) Published(level int, status bide.Status, messages int) {
	m.published.WithLabelValues(strconv.Itoa(level), status.String()).Add(float64(messages))
}

// Quarantined shows whether a level is closed.
func (m *RelayMetrics) Quarantined(level int, closed bool) {
	value := 0.0
	if closed {
		value = 1
	}
	m.quarantined.WithLabelValues(strconv.Itoa(level)).Set(value)
}

// WorkerMetrics counts what a worker does.
type WorkerMetrics struct {
	finished *prometheus.CounterVec
	lateness *prometheus.HistogramVec
	events   *prometheus.CounterVec
}

var _ worker.Observer = (*WorkerMetrics)(nil)

// NewWorkerMetrics registers a worker's metrics.
func NewWorkerMetrics(r *prometheus.Registry) *WorkerMetrics {
	m := &WorkerMetrics{
		finished: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bide_tasks_finished_total",
			Help: "Tasks finished, by result and by the way they came; sweep beside a broker means rescued, or nearer than any level.",
		}, []string{"biz_type", "result", "via"}),
		lateness: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "bide_lateness_seconds",
			Help:    "From the time a task was due to the commit of its effect.",
			Buckets: []float64{.002, .004, .006, .01, .015, .025, .05, .1, .25, .5, 1, 2, 4, 10, 60},
		}, []string{"via"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bide_worker_events_total",
			Help: "Arrivals and what was out of the ordinary; see docs/operations.md for the events.",
		}, []string{"event"}),
	}
	r.MustRegister(m.finished, m.lateness, m.events)
	for _, e := range worker.Events() {
		m.events.WithLabelValues(string(e))
	}
	return m
}

// Finished counts a finished task and how late it was.
func (m *WorkerMetrics) Finished(bizType string, result bide.Result, via bide.Via, late time.Duration) {
	m.finished.WithLabelValues(bizType, string(result), string(via)).Inc()
	m.lateness.WithLabelValues(string(via)).Observe(late.Seconds())
}

// Count counts an event.
func (m *WorkerMetrics) Count(event worker.Event, n int) {
	m.events.WithLabelValues(string(event)).Add(float64(n))
}
