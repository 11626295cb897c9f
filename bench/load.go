package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
	"github.com/bide-mq/bide/rabbit"
)

// tick is the period of the insertions; each makes its share of the rate.
const tick = 20 * time.Millisecond

// place schedules rate tasks a second, each due 3 to 8 s later at a random
// microsecond, so that most take a tier after a wait in the ledger.
func (s *system) place(ctx context.Context, rate int, load time.Duration) error {
	total := int(float64(rate) * load.Seconds())
	began := time.Now()
	for placed := 0; placed < total; {
		want := min(int(time.Since(began).Seconds()*float64(rate))+1, total)
		if want > placed {
			if err := s.schedule(ctx, placed, want); err != nil {
				return err
			}
			placed = want
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tick):
		}
	}
	return nil
}

// schedule inserts effects and tasks from one number to another in one
// transaction, as an order service would one by one.
func (s *system) schedule(ctx context.Context, from, to int) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		delays := make([]time.Duration, to-from)
		for i := range delays {
			delays[i] = 3*time.Second + time.Duration(rand.Int64N(int64(5*time.Second))).Truncate(time.Microsecond)
		}
		_, err := tx.Exec(ctx, `
			WITH due AS (SELECT $1::bigint + n - 1 AS id, now() + d AS fire_at FROM unnest($2::interval[]) WITH ORDINALITY AS u (d, n)),
			effect AS (INSERT INTO bench.effect (id, fire_at) SELECT id, fire_at FROM due)
			INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) SELECT 'measure', id::text, fire_at FROM due`, from, delays)
		return err
	})
}

// sendHeld makes tasks that are due in 1.9 s, just below the longest hold, and
// sends their messages undelayed.
func (s *system) sendHeld(ctx context.Context, n int) error {
	ledger, err := outbox.Open(ctx, s.db, outbox.DefaultSchema)
	if err != nil {
		return err
	}
	publisher, err := rabbit.NewPublisher(rabbit.Config{
		URL: os.Getenv("BIDE_RABBITMQ_URL"), Ledger: ledger.ID(), QueueType: rabbit.QueueType(s.o.queueType),
	}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return err
	}
	session, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- publisher.Run(session) }()
	defer func() { end(); <-ended }()
	err = poll(ctx, 10*time.Second, "a session", func() (bool, error) {
		return publisher.Session().State == bide.SessionUp, nil
	})
	if err != nil {
		return err
	}
	sends, err := s.insertSent(ctx, ledger.ID(), n)
	if err != nil {
		return err
	}
	for i, o := range publisher.Publish(ctx, sends) {
		if o.Status != bide.Confirmed {
			return fmt.Errorf("message %d: %w", i, o.Err)
		}
	}
	return nil
}

// insertSent writes the rows as a relay would have left them.
func (s *system) insertSent(ctx context.Context, ledger bide.LedgerID, n int) ([]bide.Send, error) {
	_, err := s.db.Exec(ctx, `INSERT INTO bench.effect (id, fire_at) SELECT n, now() + interval '1.9 s' FROM generate_series(1, $1::int) n`, n)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, `INSERT INTO bide.delay_task (biz_type, biz_id, fire_at, status)
		SELECT 'measure', id::text, fire_at, 'SENT' FROM bench.effect RETURNING id, run_at`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (bide.Send, error) {
		m := bide.Message{Ledger: ledger, DeliverAt: time.Now()}
		err := row.Scan(&m.TaskID, &m.RunAt)
		return bide.Send{Level: bide.LevelNone, Message: m}, err
	})
}

// finished waits until every task is in history.
func (s *system) finished(ctx context.Context, total int) error {
	return poll(ctx, time.Minute, "the tasks to finish", func() (bool, error) {
		var n int
		err := s.db.QueryRow(ctx, "SELECT count(*) FROM bide.delay_task_history").Scan(&n)
		return n >= total, err
	})
}

// report reads lateness from the effects and memory from the samples.
func (s *system) report(ctx context.Context) ([]figure, error) {
	var p50, p99, worst, early, swept float64
	err := s.db.QueryRow(ctx, `
		SELECT percentile_cont(0.50) WITHIN GROUP (ORDER BY ms), percentile_cont(0.99) WITHIN GROUP (ORDER BY ms), max(ms),
		       count(*) FILTER (WHERE ms < 0), (SELECT count(*) FROM bide.delay_task_history WHERE via = 'sweep')
		  FROM (SELECT 1000 * extract(epoch FROM at - fire_at)::float8 AS ms FROM bench.effect) AS e`).
		Scan(&p50, &p99, &worst, &early, &swept)
	if err != nil {
		return nil, err
	}
	figures := []figure{
		{"early", early}, {"p50_ms", p50},
		{"p99_ms", p99}, {"max_ms", worst}, {"by_sweep", swept},
	}
	for i, p := range s.procs {
		figures = append(figures, figure{fmt.Sprintf("%s_%d_MiB", p.name, i), float64(p.peak) / 1024})
	}
	return figures, nil
}
