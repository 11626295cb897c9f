package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverPeer is River with the fetching its documentation calls fast: the least
// cooldown, polls every 50 ms, 500 workers. How often it looks for scheduled
// jobs that have become due, 5 s, cannot be set.
type riverPeer struct {
	db     *database
	client *river.Client[pgx.Tx]
	idle   bool // jobs that bring about nothing
}

const riverName = "river"

// effectJob asks for one effect.
type effectJob struct {
	ID int64 `json:"id"`
}

// Kind implements [river.JobArgs].
func (effectJob) Kind() string { return "effect" }

type effectWorker struct {
	river.WorkerDefaults[effectJob]
	peer *riverPeer
}

// Work implements [river.Worker].
func (w *effectWorker) Work(ctx context.Context, job *river.Job[effectJob]) error {
	if w.peer.idle {
		return nil
	}
	return w.peer.db.effect(ctx, job.Args.ID)
}

func (*riverPeer) name() string { return riverName }

func (r *riverPeer) start(ctx context.Context, db *database) error {
	if err := r.prepare(ctx, db); err != nil {
		return err
	}
	return r.client.Start(context.WithoutCancel(ctx))
}

// prepare makes its tables and a client that does not run yet.
func (r *riverPeer) prepare(ctx context.Context, db *database) error {
	r.db = db
	driver := riverpgxv5.New(db.Pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &effectWorker{peer: r})
	r.client, err = river.NewClient(driver, &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 500}},
		Workers:           workers,
		FetchCooldown:     river.FetchCooldownMin,
		FetchPollInterval: 50 * time.Millisecond,
		Logger:            slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	return err
}

func (r *riverPeer) schedule(ctx context.Context, first int64, due []time.Time) error {
	return pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if err := r.db.expect(ctx, tx, first, due); err != nil {
			return err
		}
		jobs := make([]river.InsertManyParams, len(due))
		for i, at := range due {
			jobs[i] = river.InsertManyParams{Args: effectJob{first + int64(i)}, InsertOpts: &river.InsertOpts{ScheduledAt: at}}
		}
		_, err := r.client.InsertManyFastTx(ctx, tx, jobs)
		return err
	})
}

func (r *riverPeer) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = r.client.StopAndCancel(ctx) // measured by then
}
