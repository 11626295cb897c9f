package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// handlers is the lightest honest effect: one row updated, stamped at the end.
const handlers = `handlers:
  measure:
    lock: bench.effect(id)
    sql: UPDATE bench.effect SET at = clock_timestamp() WHERE id = ANY($1) AND at IS NULL RETURNING id
`

// system is Bide with one producer and one consumer.
type system struct {
	bin, label string
	env        []string
	handlers   string

	db        *database
	dir       string
	processes []*process
}

// Bide's brokers.
const (
	quorum  = "bide rabbitmq quorum"
	classic = "bide rabbitmq classic"
	timers  = "bide rocketmq timers"
	levels4 = "bide rocketmq levels"
	alone   = "bide no broker"
)

func newSystem(bin, label string) *system {
	env := map[string][]string{
		quorum:  {"BIDE_BROKER=rabbitmq", "BIDE_RABBITMQ_QUEUE_TYPE=quorum", "BIDE_RABBITMQ_CONSUMERS=6"},
		classic: {"BIDE_BROKER=rabbitmq", "BIDE_RABBITMQ_QUEUE_TYPE=classic", "BIDE_RABBITMQ_CONSUMERS=6"},
		timers:  {"BIDE_BROKER=rocketmq", "BIDE_ROCKETMQ_MODE=timers"},
		levels4: {"BIDE_BROKER=rocketmq", "BIDE_ROCKETMQ_MODE=levels"},
		alone:   {"BIDE_BROKER=none"},
	}
	return &system{bin: bin, label: label, env: env[label], handlers: handlers}
}

func (s *system) name() string { return s.label }

// start makes the ledger and runs the services; after an error none runs.
func (s *system) start(ctx context.Context, db *database) error {
	if err := s.prepare(ctx, db); err != nil {
		return err
	}
	for _, name := range []string{"producer", "consumer"} {
		if err := s.launch(ctx, name); err != nil {
			s.stop()
			return err
		}
	}
	return nil
}

// prepare makes the ledger.
func (s *system) prepare(ctx context.Context, db *database) error {
	s.db = db
	if err := db.migrate(ctx); err != nil {
		return err
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "bide-bench-"); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "handlers.yaml"), []byte(s.handlers), 0o600)
}

// launch starts one more service.
func (s *system) launch(ctx context.Context, name string) error {
	env := append([]string{"BIDE_DATABASE_URL=" + s.db.url()}, s.env...)
	if name == "consumer" {
		env = append(env, "BIDE_HANDLERS_FILE="+filepath.Join(s.dir, "handlers.yaml"))
	}
	p, err := launch(ctx, s.bin, name, s.dir, env)
	if err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	return nil
}

// schedule inserts effects and tasks in one transaction.
func (s *system) schedule(ctx context.Context, first int64, due []time.Time) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if err := s.db.expect(ctx, tx, first, due); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO bide.delay_task (biz_type, biz_id, fire_at)
			SELECT 'measure', ($1 + n - 1)::text, due FROM unnest($2::timestamptz[]) WITH ORDINALITY AS u (due, n)`, first, due)
		return err
	})
}

func (s *system) stop() {
	for _, p := range s.processes {
		p.stop()
	}
	_ = os.RemoveAll(s.dir)
}
