package worker

import (
	"context"
	"errors"
	"time"

	"github.com/bide-mq/bide"
)

// Ledger is what the worker reads and gives back.
type Ledger interface {
	// Peek reads live tasks, and the database's clock.
	Peek(ctx context.Context, ids []int64) ([]bide.Task, time.Time, error)
	// GiveBack makes SENT tasks WAITING whose messages are spent.
	GiveBack(ctx context.Context, ids []int64, runAts []time.Time) (int, error)
	// HonourRequests applies cancels that met an execution.
	HonourRequests(ctx context.Context) (int, error)
}

// Executor turns due tasks into effects, one transaction a call. Its errors
// say whose fault a failure is: [ErrUnavailable], [ErrLost], [ErrContended], or
// else the tasks' own.
type Executor interface {
	// Types lists the types that have a handler here, and for each the most
	// tasks that may share a transaction.
	Types() map[string]int
	// Execute runs the named tasks, all of one type.
	Execute(ctx context.Context, ids []int64, mode Mode) (Report, error)
	// Sweep locks and runs overdue tasks of the types that share transactions.
	Sweep(ctx context.Context, due bide.Due) (Report, error)
	// Overdue lists overdue tasks as due again, without locking or running
	// them.
	Overdue(ctx context.Context, due bide.Due) (Report, error)
	// Retry counts a failed execution of each task and puts it off or gives
	// it up.
	Retry(ctx context.Context, failures []Failure) ([]bide.Ended, error)
	// Reclaim records that a task is about to be tried alone under suspicion.
	// ok is false when it cannot be tried now.
	Reclaim(ctx context.Context, id int64) (task bide.Ended, ok bool, err error)
}

// Errors of an [Executor] that are not the tasks' fault.
var (
	// ErrUnavailable: the database cannot serve now. Nothing happened.
	ErrUnavailable = errors.New("database unavailable")
	// ErrLost: the database session died during the execution, without a
	// word. The tasks may have killed it, and may or may not be finished.
	ErrLost = errors.New("database session lost")
	// ErrContended: rows that the tasks' handler wants are held by another
	// transaction, or it ran out of time waiting. The tasks may be at fault,
	// and may not.
	ErrContended = errors.New("gave way to another transaction")
)

// Mode says how an execution treats its tasks.
type Mode struct {
	Via bide.Via
	// Trial runs a task in spite of its past. Only for a task alone, and
	// after Reclaim.
	Trial bool
}

// Report is what an execution came to. A task that was asked for and is in
// none of the lists is gone, not due, or held by another transaction.
type Report struct {
	// Now is the database's clock at the beginning.
	Now time.Time
	// Scan is how long it took to find and lock the tasks.
	Scan time.Duration
	// Waiting and Sent count the tasks found in either state.
	Waiting, Sent int
	// Finished are committed.
	Finished []Finished
	// Overdue tasks are due and were not run.
	Overdue []bide.Task
	// Busy tasks' orders are locked by another transaction.
	Busy []bide.Task
	// Failed tasks' handler asked for another attempt.
	Failed []Failure
	// Suspects were left out: an earlier execution ended without a word.
	Suspects []bide.Task
}

// last is the time of the last task of a state that was found, for tasks are
// found in the order of their time.
func (r Report) last(state bide.State) (last time.Time) {
	see := func(t bide.Task) {
		if t.State == state && t.RunAt.After(last) {
			last = t.RunAt
		}
	}
	for _, f := range r.Finished {
		see(f.Task)
	}
	for _, f := range r.Failed {
		see(f.Task)
	}
	for _, tasks := range [][]bide.Task{r.Overdue, r.Busy, r.Suspects} {
		for _, t := range tasks {
			see(t)
		}
	}
	return last
}

// Finished is a task that is in history now.
type Finished struct {
	Task   bide.Task
	Result bide.Result
}

// Failure is a task and why it could not be finished.
type Failure struct {
	Task   bide.Task
	Reason string
}

// FailedBatch is the error of a sweep whose tasks could not be finished
// together. It wraps the cause.
type FailedBatch struct {
	Tasks []bide.Task
	Err   error
}

func (e *FailedBatch) Error() string { return e.Err.Error() }
func (e *FailedBatch) Unwrap() error { return e.Err }

// Observer is told what happens. Its methods are called concurrently.
type Observer interface {
	// Finished: a task ended, so long after it was due.
	Finished(bizType string, result bide.Result, via bide.Via, late time.Duration)
	// Count: something happened n times.
	Count(event Event, n int)
}

// Event is something worth counting.
type Event string

// The events.
const (
	// Arrived: a delivery.
	Arrived Event = "arrived"
	// Garbage: a body that is no message of ours.
	Garbage Event = "garbage"
	// Foreign: another ledger's message.
	Foreign Event = "foreign"
	// Stale: the task is gone, rescheduled, or in other hands.
	Stale Event = "stale"
	// Early: a message that came too early to be held; its task went back.
	Early Event = "early"
	// BrokerFault: a delivery long before the time asked for.
	BrokerFault Event = "broker_fault"
	// Unhandled: a type without a handler here.
	Unhandled Event = "unhandled"
	// Busy: an order was locked, to be tried again shortly.
	Busy Event = "busy"
	// Retried: an execution failed and will be repeated.
	Retried Event = "retried"
	// GivenUp: a task is FAILED.
	GivenUp Event = "given_up"
	// Suspected: a task is tried alone because an execution died.
	Suspected Event = "suspected"
)

// Events lists all events.
func Events() []Event {
	return []Event{Arrived, Garbage, Foreign, Stale, Early, BrokerFault, Unhandled, Busy, Retried, GivenUp, Suspected}
}
