package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bide-mq/bide"
)

// Execution is a READ COMMITTED transaction that holds the rows of the tasks
// it is to finish. Locking never waits for another transaction. It must end in
// Finish or Abort.
//
// Nothing else may wait for long either: whoever waits for one of its rows for
// deadlock_timeout while it waits in turn becomes the deadlock's victim. Its
// time is therefore bounded: by the server for each statement and each pause,
// see [Execution.Limit], and by [Execution.Bound] in all.
type Execution struct {
	l     *Ledger
	conn  *pgxpool.Conn
	begun time.Time
	// journal is the sweep_batch row, 0 for none.
	journal int64

	// Tasks are locked and due.
	Tasks []bide.Task
	// Suspects are due, but an earlier execution of theirs ended without a
	// word. They are not part of this execution.
	Suspects []bide.Task
	// Now is the database's clock when the transaction began.
	Now time.Time
}

// Lock begins an execution of the named tasks. Those that are gone, not yet
// due, or held by another transaction are missing from it: ask Peek which.
// Journalled, the execution is known to others should it die.
func (l *Ledger) Lock(ctx context.Context, ids []int64, journalled bool) (*Execution, error) {
	e, err := l.lock(ctx, ids)
	if err != nil {
		return nil, err
	}
	e.setAside(func(t bide.Task) bool { return t.Reclaims > 0 })
	if !journalled {
		return e, nil
	}
	return e, e.writeJournal(ctx)
}

// LockTrial begins the execution of one task in spite of its past. Call
// [Ledger.Reclaim] first.
func (l *Ledger) LockTrial(ctx context.Context, id int64) (*Execution, error) {
	return l.lock(ctx, []int64{id})
}

func (l *Ledger) lock(ctx context.Context, ids []int64) (*Execution, error) {
	e, err := l.begin(ctx, func(b *pgx.Batch, read func(pgx.Rows) error) {
		b.Queue(l.q["lock"], ids).Query(read)
	})
	if err != nil {
		return nil, fmt.Errorf("lock tasks: %w", err)
	}
	return e, nil
}

// LockDue begins an execution of overdue tasks. It journals the execution
// first, so that a task that kills its worker is known by it.
func (l *Ledger) LockDue(ctx context.Context, due bide.Due) (*Execution, error) {
	e, err := l.begin(ctx, func(b *pgx.Batch, read func(pgx.Rows) error) {
		b.Queue(l.q["plan_by_index"])
		b.Queue(l.q["lock_due"], due.Types, fromMark(due.WaitingFrom), fromMark(due.SentFrom), due.Grace, due.Limit).Query(read)
		b.Queue(l.q["plan_default"])
	})
	if err != nil {
		return nil, fmt.Errorf("lock overdue tasks: %w", err)
	}
	e.setAside(func(t bide.Task) bool { return t.Reclaims > 0 })
	return e, e.writeJournal(ctx)
}

// fromMark turns no mark into the least time that a task can have.
func fromMark(mark time.Time) time.Time {
	if mark.IsZero() {
		return time.Unix(0, 0)
	}
	return mark
}

// begin opens the transaction and locks in one round trip.
func (l *Ledger) begin(ctx context.Context, queue func(b *pgx.Batch, read func(pgx.Rows) error)) (*Execution, error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	e := &Execution{l: l, conn: conn, begun: time.Now()}
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(l.q["limit"], strconv.FormatInt(l.limits.statement, 10), strconv.FormatInt(l.limits.idle, 10)).QueryRow(func(row pgx.Row) error {
		return row.Scan(nil, nil, nil, nil, &e.Now)
	})
	queue(b, func(rows pgx.Rows) (err error) {
		e.Tasks, err = pgx.CollectRows(rows, pgx.RowToStructByPos[bide.Task])
		return err
	})
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return nil, errors.Join(err, e.Abort(ctx))
	}
	return e, nil
}

// writeJournal commits, on a connection of its own, that these tasks are about
// to be executed. An error ends the execution.
func (e *Execution) writeJournal(ctx context.Context) error {
	if len(e.Tasks) == 0 {
		return nil
	}
	ids := make([]int64, len(e.Tasks))
	for i, t := range e.Tasks {
		ids[i] = t.ID
	}
	var dead []int64
	err := e.l.inTx(ctx, func(b *pgx.Batch) {
		b.Queue(e.l.q["sweep_begin"], ids).QueryRow(func(row pgx.Row) error { return row.Scan(&e.journal, &dead) })
	})
	if err != nil {
		return errors.Join(fmt.Errorf("journal an execution: %w", err), e.Abort(ctx))
	}
	e.setAside(func(t bide.Task) bool { return slices.Contains(dead, t.ID) })
	return nil
}

// setAside moves the suspects out of the execution.
func (e *Execution) setAside(suspect func(bide.Task) bool) {
	e.Tasks = slices.DeleteFunc(e.Tasks, func(t bide.Task) bool {
		if !suspect(t) {
			return false
		}
		e.Suspects = append(e.Suspects, t)
		return true
	})
}

// Conn is the connection inside the open transaction, for handlers. They must
// not end the transaction.
func (e *Execution) Conn() *pgxpool.Conn { return e.conn }

// Limit bounds the statements that follow to what is left of the execution's
// time, and reports an error when nothing is.
func (e *Execution) Limit(ctx context.Context) error {
	left := e.l.limits.statement - time.Since(e.begun).Milliseconds()
	if left <= 0 {
		return fmt.Errorf("%w: %d ms", ErrTooLong, e.l.limits.statement)
	}
	_, err := e.conn.Exec(ctx, e.l.q["limit"], strconv.FormatInt(left, 10), strconv.FormatInt(e.l.limits.idle, 10))
	return err
}

// Bound returns a context that ends when the execution's time is used up, with
// [ErrTooLong] as its cause. Statements under it are cancelled then, however
// many came before: several that are each within the server's limit could
// together outlast deadlock_timeout.
func (e *Execution) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := time.Duration(e.l.limits.statement) * time.Millisecond
	return context.WithDeadlineCause(ctx, e.begun.Add(limit), ErrTooLong)
}

// ErrTooLong says that an execution has used up the time in which it may hold
// its locks.
var ErrTooLong = errors.New("execution took longer than its limit")

// ErrFinish says that the last round trip failed. When the server did not say
// so itself, the tasks may or may not be finished.
var ErrFinish = errors.New("finish tasks")

// Verdict is how one task of an execution ended.
type Verdict struct {
	TaskID int64
	Result bide.Result
	// Note is kept as last_error; "" keeps what stands there.
	Note string
}

// Finish moves the tasks to history and commits, in one round trip. Locked
// tasks without a verdict stay as they were, and so do tasks to which the
// handler has given another time.
func (e *Execution) Finish(ctx context.Context, via bide.Via, verdicts []Verdict) error {
	b := &pgx.Batch{}
	if len(verdicts) > 0 {
		e.queueFinish(b, via, verdicts)
	}
	if e.journal != 0 {
		b.Queue(e.l.q["sweep_end"], e.journal)
	}
	b.Queue("COMMIT")
	if err := e.conn.SendBatch(ctx, b).Close(); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrFinish, err), e.AbortAfter(ctx, err))
	}
	e.conn.Release()
	return nil
}

func (e *Execution) queueFinish(b *pgx.Batch, via bide.Via, verdicts []Verdict) {
	locked := make(map[int64]time.Time, len(e.Tasks))
	for _, t := range e.Tasks {
		locked[t.ID] = t.RunAt
	}
	ids, runAts := make([]int64, len(verdicts)), make([]time.Time, len(verdicts))
	results, notes := make([]string, len(verdicts)), make([]string, len(verdicts))
	for i, v := range verdicts {
		ids[i], runAts[i], results[i], notes[i] = v.TaskID, locked[v.TaskID], string(v.Result), v.Note
	}
	b.Queue(e.l.q["finish"], ids, runAts, results, notes, string(via))
}

// Abort rolls back. The journal goes first: once the locks are free, a task
// that still stands there passes for one that killed its worker. When the
// database session itself died, that is what it may have done, and the journal
// stays.
func (e *Execution) Abort(ctx context.Context) error { return e.AbortAfter(ctx, nil) }

// AbortAfter is Abort after an error. Two errors that end the session speak for
// the tasks: it was idle for too long, because this process was slow, or it led
// to a server that takes no writes.
func (e *Execution) AbortAfter(ctx context.Context, cause error) error {
	defer e.conn.Release()
	e.l.shed(e.conn)
	dead := e.conn.Conn().IsClosed()
	if state := sqlState(cause); dead && state != idleInTransaction && state != readOnlyTransaction {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	var faults []error
	if e.journal != 0 {
		faults = append(faults, e.l.inTx(ctx, func(b *pgx.Batch) { b.Queue(e.l.q["sweep_end"], e.journal) }))
	}
	if !dead {
		_, err := e.conn.Exec(ctx, "ROLLBACK")
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// idleInTransaction is the SQLSTATE with which
// idle_in_transaction_session_timeout ends a session.
const idleInTransaction = "25P03"

// abortTimeout bounds a rollback; after it the connection is given up, which
// rolls back as well.
const abortTimeout = 2 * time.Second
