package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/admin"
	"github.com/bide-mq/bide/internal/worker"
)

// values lists Bide's metrics: name{labels} and value, a histogram by its count.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "bide_") {
			continue
		}
		require.NotEmpty(t, f.GetHelp())
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += fmt.Sprint(labels)
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestRelayMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := admin.NewRelayMetrics(r)
	m.Claimed(200)
	m.Claimed(3)
	m.Recovered(7)
	m.Published(bide.LevelNone, bide.Confirmed, 5)
	m.Published(2, bide.Refused, 1)
	m.Published(bide.LevelTimer, bide.Unknown, 2)
	m.Quarantined(2, true)
	m.Quarantined(3, true)
	m.Quarantined(3, false)
	require.Equal(t, map[string]float64{
		"bide_relay_claimed_total":                             203,
		"bide_relay_recovered_total":                           7,
		"bide_relay_published_total[level=0 status=confirmed]": 5,
		"bide_relay_published_total[level=2 status=refused]":   1,
		"bide_relay_published_total[level=-1 status=unknown]":  2,
		"bide_relay_level_quarantined[level=2]":                1,
		"bide_relay_level_quarantined[level=3]":                0,
	}, values(t, r))
}

func TestWorkerMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := admin.NewWorkerMetrics(r)
	want := map[string]float64{}
	for _, e := range worker.Events() { // from the start, so that a rate has something to rise from
		want[fmt.Sprintf("bide_worker_events_total[event=%s]", e)] = 0
	}
	require.Equal(t, want, values(t, r))

	m.Finished("close_order", bide.Done, bide.ViaBroker, 3*time.Millisecond)
	m.Finished("close_order", bide.Skipped, bide.ViaSweep, 2*time.Second)
	m.Count(worker.Busy, 4)
	maps.Copy(want, map[string]float64{
		"bide_tasks_finished_total[biz_type=close_order result=DONE via=broker]":   1,
		"bide_tasks_finished_total[biz_type=close_order result=SKIPPED via=sweep]": 1,
		"bide_lateness_seconds[via=broker]":                                        1,
		"bide_lateness_seconds[via=sweep]":                                         1,
		"bide_worker_events_total[event=busy]":                                     4,
	})
	require.Equal(t, want, values(t, r))
}

// The promise is 50 ms and 4 s: a histogram must tell either side of both.
func TestLatenessHasABucketForEachPromise(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	admin.NewWorkerMetrics(r).Finished("close_order", bide.Done, bide.ViaBroker, time.Second)
	families, err := r.Gather()
	require.NoError(t, err)
	var bounds []float64
	for _, f := range families {
		if f.GetName() == "bide_lateness_seconds" {
			for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
				bounds = append(bounds, b.GetUpperBound())
			}
		}
	}
	require.True(t, slices.IsSorted(bounds))
	require.Contains(t, bounds, 0.05)
	require.Contains(t, bounds, 4.0)
}

func TestGaugesThatAreAsked(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	session := bide.Session{}
	admin.WatchSession(r, func() bide.Session { return session })
	admin.WatchHeld(r, func() int { return 42 })
	for state, want := range map[bide.SessionState]float64{bide.SessionDown: 0, bide.SessionBlocked: 1, bide.SessionUp: 2} {
		session.State = state
		require.Equal(t, map[string]float64{"bide_broker_session": want, "bide_held_tasks": 42}, values(t, r))
	}
}

// fakeLedger answers what it is told to.
type fakeLedger struct {
	mu     sync.Mutex
	answer answer
	looks  int
}

type answer struct {
	counts  map[bide.State]int
	overdue time.Duration
	err     error
}

func (l *fakeLedger) is(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = a
}

func (l *fakeLedger) Counts(context.Context) (map[bide.State]int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	return l.answer.counts, l.answer.err
}

func (l *fakeLedger) OldestOverdue(context.Context) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answer.overdue, l.answer.err
}

func TestTheLedgerIsLookedAtNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := prometheus.NewRegistry()
		l := &fakeLedger{}
		l.is(answer{counts: map[bide.State]int{bide.Waiting: 5, bide.Failed: 1}, overdue: 1500 * time.Millisecond})
		g := admin.NewLedgerGauges(r, l, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx) }()
		synctest.Wait()
		want := map[string]float64{"bide_tasks[state=WAITING]": 5, "bide_tasks[state=FAILED]": 1, "bide_oldest_overdue_seconds": 1.5, "bide_ledger_age_seconds": 0}
		require.Equal(t, want, values(t, r))

		l.is(answer{err: errors.New("away")})
		<-time.After(time.Minute)
		synctest.Wait()
		want["bide_ledger_age_seconds"] = 60
		require.Equal(t, want, values(t, r), "what was known last, and how old it is")
		require.Equal(t, 7, l.looks)

		l.is(answer{counts: map[bide.State]int{bide.Waiting: 0, bide.Failed: 0}})
		<-time.After(10 * time.Second)
		synctest.Wait()
		require.Equal(t, map[string]float64{"bide_tasks[state=WAITING]": 0, "bide_tasks[state=FAILED]": 0, "bide_oldest_overdue_seconds": 0, "bide_ledger_age_seconds": 0}, values(t, r))
		cancel()
		require.NoError(t, <-ended)
	})
}
