package handler

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// answer is what a statement says of one id, and how often it said so.
type answer struct {
	result Result
	times  int
}

// match pairs the rows that a statement returned with the ids that it was
// given. The key of an answer is the id as it was given.
func (h *statement) match(ctx context.Context, conn *pgx.Conn, ids []*string, rows [][]*string) (map[string]answer, error) {
	asked := make(map[string]int, len(ids))
	for _, id := range ids {
		asked[*id]++
	}
	if err := h.respell(ctx, conn, ids, asked, rows); err != nil {
		return nil, err
	}
	answers := make(map[string]answer, len(rows))
	for _, row := range rows {
		result, err := h.result(row)
		if err != nil {
			return nil, err
		}
		a, id := answers[*row[0]], *row[0]
		switch a.times++; {
		case a.times > asked[id]:
			return nil, fmt.Errorf("id %q returned %d times, asked for %d", id, a.times, asked[id])
		case a.times > 1 && a.result != result:
			return nil, fmt.Errorf("id %q returned as %s and as %s", id, a.result.Verdict, result.Verdict)
		}
		a.result = result
		answers[id] = a
	}
	return answers, nil
}

// result reads the verdict of a row.
func (h *statement) result(row []*string) (Result, error) {
	if h.plan.columns == 1 {
		return Result{Verdict: Done}, nil
	}
	if row[1] == nil {
		return Result{}, fmt.Errorf("null verdict for id %q, want done, skip or retry", *row[0])
	}
	// A char(n) column pads with spaces.
	switch verdict := strings.TrimRight(*row[1], " "); verdict {
	case "done":
		return Result{Verdict: Done}, nil
	case "skip":
		return Result{Skipped, reasonSkip}, nil
	case "retry":
		return Result{Retry, reasonRetry}, nil
	default:
		return Result{}, fmt.Errorf("verdict %q for id %q, want done, skip or retry", verdict, *row[0])
	}
}

// respell rewrites returned ids to the spelling in which they were asked for.
// It asks the database only about those that differ, so usually not at all.
// An id that equals none of those asked for is an error, and so is null.
func (h *statement) respell(ctx context.Context, conn *pgx.Conn, ids []*string, asked map[string]int, rows [][]*string) error {
	var strange []*string
	for _, row := range rows {
		switch {
		case len(row) != h.plan.columns:
			return fmt.Errorf("%d columns returned, %d when the handler was checked: restart to check it again", len(row), h.plan.columns)
		case row[0] == nil:
			return errors.New("null id returned")
		}
		if asked[*row[0]] == 0 {
			strange = append(strange, row[0])
		}
	}
	if len(strange) == 0 {
		return nil
	}
	spelling, err := h.resolve(ctx, conn, strange, ids)
	if err != nil {
		return fmt.Errorf("compare returned ids: %w", err)
	}
	for i, id := range strange {
		if spelling[i] == nil {
			return fmt.Errorf("id %q returned, which is not among the ids in $1", *id)
		}
		*id = *spelling[i]
	}
	return nil
}

//go:embed resolve.sql
var resolveSQL string

// resolve returns, for each returned id, the asked one that equals it, or nil.
func (h *statement) resolve(ctx context.Context, conn *pgx.Conn, returned, asked []*string) ([]*string, error) {
	first, err := array(conn, h.plan.returned, returned)
	if err != nil {
		return nil, err
	}
	second, err := array(conn, h.plan.returned, asked)
	if err != nil {
		return nil, err
	}
	pairs, err := fetch(ctx, conn, len(returned)*len(asked), resolveSQL, first, second)
	if err != nil {
		return nil, err
	}
	spelling := make([]*string, len(returned))
	for _, pair := range pairs {
		r, errR := strconv.Atoi(*pair[0])
		a, errA := strconv.Atoi(*pair[1])
		if err := errors.Join(errR, errA); err != nil {
			return nil, err
		}
		spelling[r-1] = asked[a-1]
	}
	return spelling, nil
}
