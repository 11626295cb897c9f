package handler

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide"
)

// bigTable is the size in rows from which reading a table whole, for every
// batch, is worth a warning.
const bigTable = 10_000

// Advise looks for handlers that will be slow: lock or statement read a big
// table whole, by the planner's choice for ids that it does not know. It also
// warns of a lock key that several rows may share. It changes nothing, and
// passes over handlers that [Set.Prepare] has not found sound.
func (s *Set) Advise(ctx context.Context, db DB) ([]bide.Finding, error) {
	var advice []bide.Finding
	for _, h := range s.handlers {
		if h.plan == nil {
			continue
		}
		err := readOnly(ctx, db, func(conn *pgx.Conn) error {
			found, err := h.advise(ctx, conn)
			advice = append(advice, found...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("explain handler %q: %w", h.bizType, err)
		}
	}
	return advice, nil
}

func (h *statement) advise(ctx context.Context, conn *pgx.Conn) ([]bide.Finding, error) {
	var advice []bide.Finding
	if h.target != nil {
		scans, err := h.bigScans(ctx, conn, h.plan.lock)
		if err != nil {
			return nil, err
		}
		table, key := h.target.quoted()
		for _, scan := range scans {
			advice = append(advice, h.source.advice(h.lockAt, "lock reads all of "+scan.table()+" for each batch",
				fmt.Sprintf("create an index: CREATE UNIQUE INDEX CONCURRENTLY ON %s (%s)", table, key)))
		}
		if !h.plan.unique {
			advice = append(advice, h.source.advice(h.lockAt, h.target.String()+" is not unique, and a task waits until it has all of its rows",
				"name the primary key, if a task means one row"))
		}
	}
	scans, err := h.bigScans(ctx, conn, h.query.value)
	for _, scan := range scans {
		advice = append(advice, h.source.advice(h.query.start, "statement reads all of "+scan.table()+scan.purpose()+" for each batch",
			"create an index that its condition can use, or write the condition so that an index fits"))
	}
	return advice, err
}

//go:embed size.sql
var sizeSQL string

// bigScans returns the big tables that a statement reads whole, each once.
func (h *statement) bigScans(ctx context.Context, conn *pgx.Conn, sql string) ([]scan, error) {
	rows, err := fetch(ctx, conn, 1, "EXPLAIN (VERBOSE, FORMAT JSON) "+h.withUnknownIDs(sql))
	if err != nil {
		return nil, err
	}
	var explained []struct{ Plan scan }
	if err := json.Unmarshal([]byte(*rows[0][0]), &explained); err != nil {
		return nil, err
	}
	var big []scan
	for _, e := range explained {
		parameters := e.Plan.parameters(h.plan.ids.name)
		for _, s := range e.Plan.sequential() {
			if slices.ContainsFunc(big, func(o scan) bool { return o.Schema == s.Schema && o.Table == s.Table }) {
				continue
			}
			err := conn.QueryRow(ctx, sizeSQL, pgx.QueryExecModeExec, s.Schema, s.Table).Scan(&s.rows)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return nil, err
			}
			if s.rows > bigTable {
				s.Filter = withParameters(s.Filter, parameters)
				big = append(big, s)
			}
		}
	}
	return big, nil
}

// withUnknownIDs puts sub-selects in the place of the parameters. The planner
// does not look into them, so that it plans for ids it does not know: with
// NULLs it would see that there is nothing to do, and a sample of ids would
// mislead it on a small table. EXPLAIN (GENERIC_PLAN) does this from
// PostgreSQL 16 on.
func (h *statement) withUnknownIDs(sql string) string {
	tokens, _ := lex(sql)
	for _, t := range slices.Backward(tokens) {
		if t.kind != param {
			continue
		}
		name := h.plan.ids.name
		if t.text != "$1" {
			name = "jsonb[]"
		}
		sql = sql[:t.at] + fmt.Sprintf("((SELECT NULL::%s)::%[1]s)", name) + sql[t.at+len(t.text):]
	}
	return sql
}
