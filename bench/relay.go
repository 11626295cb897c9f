package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const rawRocketName = "raw rocketmq"

// measureRelay compares confirmed publishing, the brokers' raw clients first,
// since the load offered to the relay follows from theirs.
func measureRelay(ctx context.Context, b *bench) error {
	for range b.repeat {
		raw, err := b.rawRabbit(ctx)
		if err != nil {
			return err
		}
		b.record.add("relay", "raw rabbitmq", "messages/s", raw)
		if err := b.relayed(ctx, quorum, raw); err != nil {
			return err
		}
		if raw, err = b.rawRocket(ctx); err != nil {
			return err
		}
		b.record.add("relay", rawRocketName, "messages/s", raw)
		if err := b.relayed(ctx, timers, raw); err != nil {
			return err
		}
		forwarded, err := b.forwarded(ctx)
		if err != nil {
			return fmt.Errorf("watermill: %w", err)
		}
		b.record.add("relay", "watermill forwarder", "messages/s", forwarded)
	}
	return nil
}

// rawRabbit publishes to one tier with a window of unconfirmed messages.
func (b *bench) rawRabbit(ctx context.Context) (float64, error) {
	raw := &bareRabbit{queueType: "quorum", ttl: time.Hour}
	if err := raw.start(ctx, nil); err != nil {
		return 0, err
	}
	defer raw.stop()
	began := time.Now()
	if err := raw.schedule(ctx, 0, make([]time.Time, b.messages)); err != nil {
		return 0, err
	}
	raw.settle()
	return float64(b.messages) / time.Since(began).Seconds(), nil
}

// rawRocket sends timers from as many places as the relay's publisher has.
func (b *bench) rawRocket(ctx context.Context) (float64, error) {
	raw := &bareRocket{}
	if err := raw.start(ctx, nil); err != nil {
		return 0, err
	}
	defer raw.stop()
	began := time.Now()
	if err := raw.schedule(ctx, 0, sameTime(b.messages, began.Add(time.Hour))); err != nil {
		return 0, err
	}
	return float64(b.messages) / time.Since(began).Seconds(), nil
}

// relayed offers the producer alone half as much again as the raw client did,
// and notes what it sustains. Due times are spread, because a task is handed to
// a tier in a window of its remaining time; with timers all could go at once.
func (b *bench) relayed(ctx context.Context, label string, raw float64) error {
	db, err := newDatabase(ctx)
	if err != nil {
		return err
	}
	defer db.drop()
	s := newSystem(b.bin, label)
	if err := s.prepare(ctx, db); err != nil {
		return err
	}
	defer s.stop()
	const overload, lasting = 1.5, 3
	spread := lasting * b.sustained.Seconds()
	n := int(overload * raw * spread)
	_, err = db.Exec(ctx, `INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
		SELECT 'measure', n::text, now() + interval '20 s' + n * ($2::float8 / $1) * interval '1 s' FROM generate_series(1, $1::int) n`, n, spread)
	if err != nil {
		return err
	}
	if err := s.launch(ctx, "producer"); err != nil {
		return err
	}
	rate, err := fastest(ctx, s.processes[0].listen, n, b.sustained)
	if err != nil {
		return err
	}
	b.record.add("relay", label, "messages/s", rate)
	return nil
}

// fastest samples the producer's count of confirmed messages until nothing has
// been added for some time, and returns the best rate that was sustained, or of
// the whole where that is shorter.
func fastest(ctx context.Context, listen string, total int, sustained time.Duration) (float64, error) {
	type sample struct {
		at    time.Time
		count float64
	}
	var samples []sample
	var best float64
	for quiet := time.Now(); time.Since(quiet) < 15*time.Second; {
		count, err := confirmed(listen)
		if err != nil {
			return 0, err
		}
		now := time.Now()
		if count > 0 && (len(samples) == 0 || count > samples[len(samples)-1].count) {
			quiet = now
			samples = append(samples, sample{now, count})
		}
		for _, s := range samples {
			if lasted := now.Sub(s.at); lasted >= sustained {
				best = max(best, (count-s.count)/lasted.Seconds())
			}
		}
		if count >= float64(total) {
			break
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	if best == 0 && len(samples) > 1 {
		last := samples[len(samples)-1]
		best = (last.count - samples[0].count) / last.at.Sub(samples[0].at).Seconds()
	}
	return best, nil
}

// confirmed reads the producer's own count.
func confirmed(listen string) (count float64, err error) {
	resp, err := http.Get("http://" + listen + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(name, "bide_relay_published_total{") && strings.Contains(name, `status="confirmed"`) {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			count += n
		}
	}
	return count, nil
}
