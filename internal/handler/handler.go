package handler

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide"
)

// MaxBatch bounds how many tasks may share a transaction.
const MaxBatch = 1000

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
	// Handle returns one Result per task, in order. conn is inside a READ
	// COMMITTED transaction, which Handle neither commits nor rolls back. An
	// error fails the whole batch.
	Handle(ctx context.Context, conn *pgx.Conn, tasks []bide.Task) ([]Result, error)
	// Batch is the most tasks that may share a transaction, from 1 (each
	// alone) to MaxBatch.
	Batch() int
}

// Func is a Handler in Go that takes each task alone. [InBatches] gives it
// more at a time. tx is a savepoint in the transaction that also finishes the
// tasks: the function must not commit it, and an error rolls everything back.
type Func func(ctx context.Context, tx pgx.Tx, tasks []bide.Task) ([]Result, error)

var _ Handler = Func(nil)

// Handle calls f.
func (f Func) Handle(ctx context.Context, conn *pgx.Conn, tasks []bide.Task) ([]Result, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{
		BeginQuery: "SAVEPOINT bide_handler", CommitQuery: "RELEASE SAVEPOINT bide_handler",
	})
	if err != nil {
		return nil, fmt.Errorf("begin the handler's savepoint: %w", err)
	}
	results, err := f(ctx, tx, tasks)
	if err != nil {
		return nil, err // the executor rolls the whole transaction back
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("release the handler's savepoint: %w", err)
	}
	return results, nil
}

// Batch is 1.
func (f Func) Batch() int { return 1 }

// InBatches is f with up to n tasks a call, 1 to MaxBatch.
func InBatches(n int, f Func) Handler { return batched{Func: f, n: n} }

type batched struct {
	Func
	n int
}

func (b batched) Batch() int { return b.n }

// Check refuses a handler in Go that cannot be used.
func Check(bizType string, h Handler) error {
	switch {
	case bizType == "" || len(bizType) > maxBizType:
		return fmt.Errorf("handler %.40q: want a biz_type of 1 to %d bytes", bizType, maxBizType)
	case h == nil:
		return fmt.Errorf("handler %q: is nil", bizType)
	case h.Batch() < 1 || h.Batch() > MaxBatch:
		return fmt.Errorf("handler %q: batch of %d tasks: want 1 to %d", bizType, h.Batch(), MaxBatch)
	default:
		return nil
	}
}
