package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// MaxBatch bounds how many tasks may share a transaction.
const MaxBatch = 1000

// Task is what a handler sees of a ledger row.
type Task struct {
	ID      int64
	BizType string
	BizID   string
	// FireAt is the promise: the handler is not called before this time.
	FireAt time.Time
	// Payload is the application's JSON; nil where it gave none.
	Payload json.RawMessage
	// Attempt counts the executions that failed before this one.
	Attempt int
}

// Verdict is what a handler says of one task.
type Verdict uint8

// The verdicts. Skipped is the zero value.
const (
	// Skipped: there was nothing to do, for example because the order is paid.
	Skipped Verdict = iota
	// Done: the handler acted.
	Done
	// Retry: not now; try again after a back-off, as after an error.
	Retry
	// Locked: someone else holds the task's row; try again shortly. Does not
	// count as a failure.
	Locked
)

func (v Verdict) String() string {
	switch v {
	case Skipped:
		return "skipped"
	case Done:
		return "done"
	case Retry:
		return "retry"
	case Locked:
		return "locked"
	default:
		return fmt.Sprintf("verdict(%d)", uint8(v))
	}
}

// Result is a verdict and, where it needs one, its reason, for an operator to
// read.
type Result struct {
	Verdict Verdict
	Reason  string
}

// Handler turns the tasks of one biz_type into effects inside the transaction
// that also finishes them.
type Handler interface {
	// Handle returns one Result per task, in order. The transaction is READ
	// COMMITTED; Handle neither commits it nor rolls it back. An error fails
	// the whole batch.
	Handle(ctx context.Context, tx pgx.Tx, tasks []Task) ([]Result, error)
	// Batch is the most tasks that may share a transaction, from 1 (each
	// alone) to MaxBatch.
	Batch() int
}

// Func is a Handler in Go that takes each task alone. [InBatches] gives it
// more at a time.
type Func func(ctx context.Context, tx pgx.Tx, tasks []Task) ([]Result, error)

var _ Handler = Func(nil)

// Handle calls f.
func (f Func) Handle(ctx context.Context, tx pgx.Tx, tasks []Task) ([]Result, error) {
	return f(ctx, tx, tasks)
}

// Batch is 1.
func (f Func) Batch() int { return 1 }

// InBatches is f with up to n tasks a call. n is from 1 to MaxBatch.
func InBatches(n int, f Func) (Handler, error) {
	if n < 1 || n > MaxBatch {
		return nil, fmt.Errorf("batch of %d tasks: want 1 to %d", n, MaxBatch)
	}
	return batched{Func: f, n: n}, nil
}

type batched struct {
	Func
	n int
}

func (b batched) Batch() int { return b.n }
