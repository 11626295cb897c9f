package handler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/pgtest"
)

const closeOrder = `
lock: shop.orders(id)
sql: |
  UPDATE shop.orders SET status = 'CLOSED'
  WHERE id = ANY ($1) AND status = 'UNPAID'
  RETURNING id
`

// newShop makes a database with a hundred unpaid orders, ids from 0.
func newShop(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.NewDatabase(t), 4)
	exec(t, pool, `
		CREATE SCHEMA shop;
		CREATE TABLE shop.orders (id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'UNPAID', note text);
		CREATE TABLE shop.payments (order_id bigint REFERENCES shop.orders);
		INSERT INTO shop.orders SELECT generate_series(0, 99)`)
	return pool
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func exec(t *testing.T, db execer, sql string) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// value returns the only value of a query, as text.
func value(t *testing.T, pool *pgxpool.Pool, sql string) string {
	t.Helper()
	var v *string
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT ("+sql+")::text").Scan(&v))
	if v == nil {
		return "NULL"
	}
	return *v
}

// parse reads a file with the handler h, of which fields are the lines.
func parse(t *testing.T, fields string) *handler.Set {
	t.Helper()
	file := "handlers:\n  h:\n    " + strings.ReplaceAll(strings.Trim(fields, "\n"), "\n", "\n    ") + "\n"
	set, err := handler.Parse("h.yaml", []byte(file))
	require.NoError(t, err)
	return set
}

// prepare is parse, and the handler made usable.
func prepare(t *testing.T, db handler.DB, fields string) handler.Handler {
	t.Helper()
	set := parse(t, fields)
	require.NoError(t, set.Prepare(t.Context(), db))
	return set.Handlers()["h"]
}

func tasks(ids ...string) []bide.Task {
	tasks := make([]bide.Task, len(ids))
	for i, id := range ids {
		tasks[i] = bide.Task{ID: int64(i + 1), BizType: "h", BizID: id, FireAt: time.Now()}
	}
	return tasks
}

func payload(id, json_ string) bide.Task {
	task := bide.Task{BizType: "h", BizID: id}
	if json_ != "" {
		task.Payload = json.RawMessage(json_)
	}
	return task
}

// try handles the tasks in a transaction of their own, as the executor does.
func try(ctx context.Context, db handler.DB, h handler.Handler, tasks []bide.Task) (results []handler.Result, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '5s'"); err != nil {
			return err
		}
		results, err = h.Handle(ctx, tx.Conn(), tasks)
		return err
	})
	return results, err
}

// handle returns verdicts and reasons, as text.
func handle(t *testing.T, db handler.DB, h handler.Handler, tasks ...bide.Task) []string {
	t.Helper()
	results, err := try(t.Context(), db, h, tasks)
	require.NoError(t, err)
	require.Len(t, results, len(tasks))
	said := make([]string, len(results))
	for i, r := range results {
		said[i] = strings.TrimSuffix(fmt.Sprintf("%s: %s", r.Verdict, r.Reason), ": ")
	}
	return said
}

// failure is the error of a batch that must fail.
func failure(t *testing.T, db handler.DB, h handler.Handler, tasks ...bide.Task) error {
	t.Helper()
	results, err := try(t.Context(), db, h, tasks)
	require.Error(t, err)
	require.Nil(t, results)
	return err
}
