package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"
)

// idleHandlers act on nothing, so that what is counted is the queue's own.
const idleHandlers = `handlers:
  measure:
    sql: SELECT unnest($1)
`

// applications is how many transactions schedule at once, one task each, as an
// order service does.
const applications = 16

// measureWAL counts the bytes of WAL and the row versions that a task costs,
// from its scheduling to its end, without any effect.
func measureWAL(ctx context.Context, b *bench) error {
	for range b.repeat {
		for _, label := range []string{quorum, alone} {
			if err := b.loggedBide(ctx, label); err != nil {
				return err
			}
		}
		if err := b.loggedRiver(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) loggedBide(ctx context.Context, label string) error {
	s := newSystem(b.bin, label)
	s.handlers = idleHandlers
	return running(ctx, s, func(db *database) error {
		return b.logTasks(ctx, db, label, "bide.delay_task_history", func(n int, due time.Time) error {
			_, err := db.Exec(ctx, "INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) VALUES ('measure', $1::int::text, $2)", n, due)
			return err
		})
	})
}

func (b *bench) loggedRiver(ctx context.Context) error {
	r := &riverPeer{idle: true}
	return running(ctx, r, func(db *database) error {
		return b.logTasks(ctx, db, riverName, "river_job WHERE state = 'completed'", func(n int, due time.Time) error {
			return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
				_, err := r.client.InsertTx(ctx, tx, effectJob{int64(n)}, &river.InsertOpts{ScheduledAt: due})
				return err
			})
		})
	})
}

// logTasks schedules from several transactions at once, waits until finished has
// all, and notes what the server wrote meanwhile.
func (b *bench) logTasks(ctx context.Context, db *database, who, finished string, schedule func(n int, due time.Time) error) error {
	if _, err := db.Exec(ctx, "CHECKPOINT"); err != nil {
		return err
	}
	wal, versions, err := written(ctx, db)
	if err != nil {
		return err
	}
	var scheduling errgroup.Group
	scheduling.SetLimit(applications)
	for n := range b.logged {
		scheduling.Go(func() error { return schedule(n, time.Now().Add(leastDelay)) })
	}
	if err := scheduling.Wait(); err != nil {
		return err
	}
	err = poll(ctx, 2*time.Minute, "the tasks to end", func() (bool, error) {
		n, err := db.number(ctx, "SELECT count(*)::float8 FROM "+finished)
		return n >= float64(b.logged), err
	})
	if err != nil {
		return err
	}
	time.Sleep(11 * time.Second) // idle backends report their counts after ten
	walAfter, versionsAfter, err := written(ctx, db)
	if err != nil {
		return err
	}
	b.record.add("wal", who, "bytes/task", (walAfter-wal)/float64(b.logged))
	b.record.add("wal", who, "row versions/task", (versionsAfter-versions)/float64(b.logged))
	return nil
}

// written is how many bytes of WAL the server and how many row versions the
// database has written so far.
func written(ctx context.Context, db *database) (wal, versions float64, err error) {
	err = db.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8,
		(SELECT coalesce(sum(n_tup_ins + n_tup_upd), 0)::float8 FROM pg_stat_user_tables)`).Scan(&wal, &versions)
	return wal, versions, err
}
