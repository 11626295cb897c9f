package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// bar is what a figure has to reach.
type bar struct {
	name   string
	value  float64
	atMost bool // otherwise at least
	figure func(*record) (float64, bool)
}

// of is a figure itself, the median of its repetitions.
func of(measurement, contestant, figure string) func(*record) (float64, bool) {
	return func(r *record) (float64, bool) { return r.median(measurement, contestant, figure) }
}

// ratio divides two figures.
func ratio(of, by func(*record) (float64, bool)) func(*record) (float64, bool) {
	return func(r *record) (float64, bool) {
		a, ok := of(r)
		b, too := by(r)
		return a / b, ok && too && b != 0
	}
}

// worst is the greatest of what there is.
func worst(figures ...func(*record) (float64, bool)) func(*record) (float64, bool) {
	return extreme(math.Max, figures)
}

// best is the least of what there is.
func best(figures ...func(*record) (float64, bool)) func(*record) (float64, bool) {
	return extreme(math.Min, figures)
}

func extreme(choose func(a, b float64) float64, figures []func(*record) (float64, bool)) func(*record) (float64, bool) {
	return func(r *record) (value float64, found bool) {
		for _, f := range figures {
			v, ok := f(r)
			switch {
			case ok && found:
				value = choose(value, v)
			case ok:
				value, found = v, true
			}
		}
		return value, found
	}
}

// bars are what Bide wants to be measured by.
func (s size) bars() []bar {
	late := latenessOf(judgedRate)
	var all []bar
	for _, w := range []struct {
		contestant string
		p50, p99   float64
	}{{quorum, 6, 25}, {timers, 6, 30}, {levels4, 6, 30}, {alone, 60, 120}} {
		name := "lateness_" + strings.ReplaceAll(strings.TrimPrefix(w.contestant, "bide "), " ", "_")
		all = append(all,
			bar{name + "_p50_ms", w.p50, true, of(late, w.contestant, "p50 ms")},
			bar{name + "_p99_ms", w.p99, true, of(late, w.contestant, "p99 ms")},
			bar{name + "_early", 0, true, of(late, w.contestant, "early")})
	}
	peer := func(name string) func(*record) (float64, bool) { return of(late, name, "error p99 ms") }
	return append(all,
		bar{"lateness_p99_to_best_peer", 1.0 / 30, true, ratio(of(late, quorum, "p99 ms"), best(peer(riverName), peer(asynqName), peer(watermillName)))},
		bar{"relay_to_raw_rabbitmq", .7, false, ratio(of("relay", quorum, "messages/s"), of("relay", "raw rabbitmq", "messages/s"))},
		bar{"relay_to_raw_rocketmq", .7, false, ratio(of("relay", timers, "messages/s"), of("relay", rawRocketName, "messages/s"))},
		bar{"relay_to_watermill_forwarder", 10, false, ratio(of("relay", quorum, "messages/s"), of("relay", "watermill forwarder", "messages/s"))},
		bar{"burst_to_raw_pipeline", .75, false, ratio(of("burst", quorum, "tasks/s"), of("burst", rawPipeline, "tasks/s"))},
		bar{"drain_to_river", 1.5, false, ratio(of("drain", alone, "tasks/s"), of("drain", riverName, "tasks/s"))},
		bar{"claim_many_to_few_ms", 1.2, true, ratio(s.claim(s.many, "ms"), s.claim(s.few, "ms"))},
		bar{"claim_old_snapshot_buffers", 3, true, ratio(of("claim", "bide, old snapshot", "buffers"), of("claim", "bide, no old snapshot", "buffers"))},
		bar{"wal_to_river", 1, true, ratio(of("wal", alone, "bytes/task"), of("wal", riverName, "bytes/task"))},
		bar{"wal_to_river_rabbitmq", 1, true, ratio(of("wal", quorum, "bytes/task"), of("wal", riverName, "bytes/task"))},
		bar{"memory_at_load_MiB", 64, true, worst(costs(quorum, fmt.Sprintf("at %d/s", judgedRate), "MiB")...)},
		bar{"memory_held_MiB", 64, true, worst(costs(quorum, fmt.Sprintf("%d held", s.held), "MiB")...)},
		bar{"idle_percent_of_a_core", 1, true, worst(append(append(costs(quorum, "idle", "% of a core"),
			costs(timers, "idle", "% of a core")...), costs(alone, "idle", "% of a core")...)...)},
	)
}

func (s size) claim(pending int, figure string) func(*record) (float64, bool) {
	return of("claim", fmt.Sprintf("bide, %d pending", pending), figure)
}

// costs are a figure of both services.
func costs(label, when, figure string) []func(*record) (float64, bool) {
	var all []func(*record) (float64, bool)
	for _, service := range []string{"producer", "consumer"} {
		all = append(all, of("cost", fmt.Sprintf("%s, %s, %s", label, service, when), figure))
	}
	return all
}

// judge prints a line for each bar whose figures were measured.
func judge(w io.Writer, b *bench) {
	for _, bar := range b.bars() {
		value, ok := bar.figure(b.record)
		if !ok {
			continue
		}
		verdict := "short"
		if bar.atMost && value <= bar.value || !bar.atMost && value >= bar.value {
			verdict = "ok"
		}
		_, _ = fmt.Fprintf(w, "ratio %s=%.4g bar=%.4g %s\n", bar.name, value, bar.value, verdict)
	}
}
