package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
	"github.com/bide-mq/bide/rabbit"
)

// settling is how long services have to get over their start.
const settling = 5 * time.Second

// measureCost measures memory and processor time of the services: idle, at the
// judged rate, and with many messages held.
func measureCost(ctx context.Context, b *bench) error {
	for range b.repeat {
		for _, label := range []string{quorum, timers, alone} {
			if err := b.idleCost(ctx, label); err != nil {
				return err
			}
		}
		if err := b.loadCost(ctx); err != nil {
			return err
		}
		if err := b.heldCost(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) idleCost(ctx context.Context, label string) error {
	s := newSystem(b.bin, label)
	return running(ctx, s, func(*database) error {
		time.Sleep(settling)
		return b.spent(s, "idle", func() error {
			time.Sleep(b.idle)
			return nil
		})
	})
}

func (b *bench) loadCost(ctx context.Context) error {
	s := newSystem(b.bin, quorum)
	return running(ctx, s, func(*database) error {
		return b.spent(s, fmt.Sprintf("at %d/s", judgedRate), func() error {
			n, err := place(ctx, s, judgedRate, b.load)
			if err != nil {
				return err
			}
			return s.db.done(ctx, n, mostDelay+10*time.Second)
		})
	})
}

// spent notes each service's share of a core during f, and its peak of memory.
func (b *bench) spent(s *system, when string, f func() error) error {
	before := make([]time.Duration, len(s.processes))
	for i, p := range s.processes {
		before[i] = p.cpu()
	}
	began := time.Now()
	if err := f(); err != nil {
		return err
	}
	lasted := time.Since(began)
	for i, p := range s.processes {
		who := fmt.Sprintf("%s, %s, %s", s.label, p.name, when)
		b.record.add("cost", who, "% of a core", 100*float64(p.cpu()-before[i])/float64(lasted))
		b.record.add("cost", who, "MiB", p.most())
	}
	return nil
}

// heldCost has one consumer hold many messages that are due at one later moment.
func (b *bench) heldCost(ctx context.Context) error {
	s := newSystem(b.bin, quorum)
	return running(ctx, s, func(*database) error {
		return b.spent(s, fmt.Sprintf("%d held", b.held), func() error {
			if err := s.sendHeld(ctx, b.held); err != nil {
				return err
			}
			return s.db.done(ctx, b.held, time.Minute)
		})
	})
}

// sendHeld makes tasks that are due in 1.9 s, just below the longest hold, and
// sends their messages undelayed.
func (s *system) sendHeld(ctx context.Context, n int) error {
	ledger, err := outbox.Open(ctx, s.db.Pool, outbox.DefaultSchema)
	if err != nil {
		return err
	}
	publisher, err := rabbit.NewPublisher(rabbit.Config{
		URL: os.Getenv("BIDE_RABBITMQ_URL"), Ledger: ledger.ID(), QueueType: rabbit.QueueType("quorum"),
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
