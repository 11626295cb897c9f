package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bide-mq/bide/outbox"
)

// effects are what the contestants have to bring about: a row stamped, once, by
// the database's clock.
const effects = `CREATE SCHEMA bench;
CREATE TABLE bench.effect (id bigint PRIMARY KEY, fire_at timestamptz NOT NULL, at timestamptz) WITH (fillfactor = 50);`

// database is one that a measurement has for itself.
type database struct {
	admin string
	*pgxpool.Pool
}

const (
	databaseName = "bide_bench"
	dropDatabase = "DROP DATABASE IF EXISTS " + databaseName + " WITH (FORCE)"
)

// newDatabase makes a database with the table of effects.
func newDatabase(ctx context.Context) (*database, error) {
	d := &database{admin: os.Getenv("BIDE_DATABASE_URL")}
	if d.admin == "" {
		return nil, errors.New("BIDE_DATABASE_URL is not set")
	}
	if err := d.administer(ctx, dropDatabase, "CREATE DATABASE "+databaseName, "CHECKPOINT"); err != nil {
		return nil, err
	}
	cfg, err := outbox.PoolConfig(d.url(), 32)
	if err != nil {
		return nil, err
	}
	if d.Pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	if _, err := d.Exec(ctx, effects); err != nil {
		d.drop()
		return nil, err
	}
	return d, nil
}

// migrate makes Bide's schema.
func (d *database) migrate(ctx context.Context) error {
	return d.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		_, err := outbox.Migrate(ctx, c.Conn(), outbox.DefaultSchema)
		return err
	})
}

func (d *database) url() string {
	u, err := url.Parse(d.admin)
	if err != nil {
		return d.admin // refused by whoever connects
	}
	u.Path = "/" + databaseName
	return u.String()
}

func (d *database) administer(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, d.admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to lose
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// drop is for the end: it has no error to give that would change a figure.
func (d *database) drop() {
	d.Close()
	_ = d.administer(context.Background(), dropDatabase)
}

// expect inserts effects from one number on, due at the times.
func (d *database) expect(ctx context.Context, tx pgx.Tx, first int64, due []time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO bench.effect (id, fire_at)
		SELECT $1 + n - 1, due FROM unnest($2::timestamptz[]) WITH ORDINALITY AS u (due, n)`, first, due)
	return err
}

// effect brings one about, the way a worker without batches does.
func (d *database) effect(ctx context.Context, id int64) error {
	_, err := d.Exec(ctx, "UPDATE bench.effect SET at = clock_timestamp() WHERE id = $1 AND at IS NULL", id)
	return err
}

// done waits until so many effects are there.
func (d *database) done(ctx context.Context, n int, most time.Duration) error {
	return poll(ctx, most, fmt.Sprintf("%d effects", n), func() (bool, error) {
		var done int
		err := d.QueryRow(ctx, "SELECT count(at) FROM bench.effect").Scan(&done)
		return done >= n, err
	})
}

// lateness returns effect minus due time in milliseconds, ascending; of what
// was never brought about it tells nothing.
func (d *database) lateness(ctx context.Context) ([]float64, error) {
	rows, err := d.Query(ctx, "SELECT 1000 * extract(epoch FROM at - fire_at)::float8 AS ms FROM bench.effect WHERE at IS NOT NULL ORDER BY ms")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[float64])
}

// number asks for one.
func (d *database) number(ctx context.Context, sql string, args ...any) (n float64, err error) {
	err = d.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}

// poll asks until the answer is yes.
func poll(ctx context.Context, most time.Duration, what string, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		if ok, err := ask(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
