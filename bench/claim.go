package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/outbox"
)

// A claim is measured with tasks of this density, whatever their number: only
// how many lie outside the windows differs.
const (
	claimSpacing = 8640 * time.Microsecond // 10 million in a day
	claimEvery   = 100 * time.Millisecond
	claims       = 50
)

// naiveClaim is what most would write. It takes as many rows as a claim of all
// windows does, about.
const naiveClaim = `UPDATE bide.delay_task SET status = 'SENT', sends = sends + 1, updated_at = now()
	WHERE id IN (SELECT id FROM bide.delay_task WHERE status = 'WAITING' AND run_at <= now() ORDER BY run_at LIMIT 100 FOR UPDATE SKIP LOCKED)`

// measureClaim compares one claim with few and many tasks pending, and after
// many have passed while a transaction held an old snapshot.
func measureClaim(ctx context.Context, b *bench) error {
	for _, n := range []int{b.few, b.many} {
		if err := b.claimAmong(ctx, n); err != nil {
			return err
		}
	}
	for range b.repeat {
		if err := b.claimUnderSnapshot(ctx); err != nil {
			return err
		}
	}
	return nil
}

// claimAmong measures with so many tasks pending.
func (b *bench) claimAmong(ctx context.Context, n int) error {
	return b.withLedger(ctx, func(db *database, ledger *outbox.Ledger) error {
		if err := pend(ctx, db, n); err != nil {
			return err
		}
		for range b.repeat {
			if err := b.claimCost(ctx, db, ledger, fmt.Sprintf("%d pending", n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// claimUnderSnapshot measures before and after many tasks have passed that no
// vacuum may clean up.
func (b *bench) claimUnderSnapshot(ctx context.Context) error {
	return b.withLedger(ctx, func(db *database, ledger *outbox.Ledger) error {
		if err := pend(ctx, db, b.few); err != nil {
			return err
		}
		if err := b.claimCost(ctx, db, ledger, "no old snapshot"); err != nil {
			return err
		}
		return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(old pgx.Tx) error {
			if _, err := old.Exec(ctx, "SELECT count(*) FROM bench.effect"); err != nil {
				return err
			}
			if err := pass(ctx, db, b.passed); err != nil {
				return err
			}
			return b.claimCost(ctx, db, ledger, "old snapshot")
		})
	})
}

func (b *bench) withLedger(ctx context.Context, f func(*database, *outbox.Ledger) error) error {
	db, err := newDatabase(ctx)
	if err != nil {
		return err
	}
	defer db.drop()
	if err := db.migrate(ctx); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		return err
	}
	ledger, err := outbox.Open(ctx, db.Pool, outbox.DefaultSchema)
	if err != nil {
		return err
	}
	return f(db, ledger)
}

// pend inserts waiting tasks, the first of them due now. Triggers are for what
// an application inserts.
func pend(ctx context.Context, db *database, n int) error {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
			SELECT 'measure', n::text, now() + n * $2::interval FROM generate_series(1, $1::int) n`, n, claimSpacing)
		return err
	})
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, "VACUUM ANALYZE bide.delay_task")
	return err
}

// pass lets tasks go by: each is inserted, sent and finished.
func pass(ctx context.Context, db *database, n int) error {
	const chunk = 20_000
	for done := 0; done < n; done += chunk {
		_, err := db.Exec(ctx, `INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
			SELECT 'passing', n::text, now() + n * interval '20 microseconds' FROM generate_series(1, $1::int) n`, chunk)
		if err != nil {
			return err
		}
		if _, err := db.Exec(ctx, "UPDATE bide.delay_task SET status = 'SENT', sends = 1 WHERE biz_type = 'passing'"); err != nil {
			return err
		}
		if _, err := db.Exec(ctx, "DELETE FROM bide.delay_task WHERE biz_type = 'passing'"); err != nil {
			return err
		}
	}
	return nil
}

// claimCost claims for some seconds as a relay does, then by the naive query,
// and notes time and buffers per claim.
func (b *bench) claimCost(ctx context.Context, db *database, ledger *outbox.Ledger, among string) error {
	plan, err := levels.NewPlan(bide.Capabilities{Delays: levels.RabbitMQ(), Lead: 100 * time.Millisecond, Window: 256}, levels.DefaultSlack)
	if err != nil {
		return err
	}
	var windows []bide.Window
	for _, w := range plan.Windows() {
		if w.To < time.Duration(b.few)*claimSpacing { // full ones, however many are pending
			windows = append(windows, bide.Window{Level: w.Level, From: w.From, To: w.To, Limit: 256})
		}
	}
	claim := func() error {
		batch, err := ledger.Claim(ctx, windows)
		if err != nil || batch.ID == 0 {
			return err
		}
		return ledger.Settle(ctx, batch.ID, nil)
	}
	if err := b.timed(ctx, db, among, "bide", "%relay_batch (ids)%", claim); err != nil {
		return err
	}
	return b.timed(ctx, db, among, "skip locked", "%run_at <= now() ORDER BY run_at%", func() error {
		_, err := db.Exec(ctx, naiveClaim)
		return err
	})
}

// timed repeats a statement and reads what the server counted for it.
func (b *bench) timed(ctx context.Context, db *database, among, who, like string, once func() error) error {
	for range 5 { // plans are made, caches filled
		if err := once(); err != nil {
			return err
		}
	}
	if _, err := db.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
		return err
	}
	for range claims {
		if err := once(); err != nil {
			return err
		}
		time.Sleep(claimEvery)
	}
	var ms, buffers, rows float64
	err := db.QueryRow(ctx, `SELECT sum(total_exec_time) / sum(calls), sum(shared_blks_hit + shared_blks_read)::float8 / sum(calls)::float8, sum(rows)::float8 / sum(calls)::float8
		FROM pg_stat_statements WHERE query LIKE $1 AND query NOT LIKE '%pg_stat_statements%' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())`, like).
		Scan(&ms, &buffers, &rows)
	if err != nil {
		return fmt.Errorf("statistics of %s: %w", who, err)
	}
	name := who + ", " + among
	b.record.add("claim", name, "ms", ms)
	b.record.add("claim", name, "buffers", buffers)
	b.record.add("claim", name, "rows", rows)
	return nil
}
