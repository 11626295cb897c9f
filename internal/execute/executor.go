package execute

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/outbox"
)

// mostReclaims is how many executions may end without a word before a task is
// given up: the first one unrecorded, then as many recorded trials as this
// leaves.
const mostReclaims = 3

// Executor implements [worker.Executor].
type Executor struct {
	ledger   *outbox.Ledger
	handlers map[string]handler.Handler
	backoff  outbox.Backoff
}

var _ worker.Executor = (*Executor)(nil)

// New returns an executor of these handlers, by biz_type.
func New(ledger *outbox.Ledger, handlers map[string]handler.Handler, backoff outbox.Backoff) *Executor {
	return &Executor{ledger: ledger, handlers: handlers, backoff: backoff}
}

// Types lists the handled types and their batch sizes.
func (x *Executor) Types() map[string]int {
	types := make(map[string]int, len(x.handlers))
	for bizType, h := range x.handlers {
		types[bizType] = h.Batch()
	}
	return types
}

// Execute runs the named tasks in one transaction. Those that a sweep has
// found are journalled: no redelivery tells of them if this worker dies.
func (x *Executor) Execute(ctx context.Context, ids []int64, mode worker.Mode) (worker.Report, error) {
	begun := time.Now()
	e, err := x.lock(ctx, ids, mode)
	if err != nil {
		return worker.Report{}, classify(err, nil)
	}
	return x.run(ctx, e, mode.Via, time.Since(begun))
}

func (x *Executor) lock(ctx context.Context, ids []int64, mode worker.Mode) (*outbox.Execution, error) {
	if mode.Trial {
		return x.ledger.LockTrial(ctx, ids[0])
	}
	return x.ledger.Lock(ctx, ids, mode.Via == bide.ViaSweep)
}

// Sweep locks overdue tasks and runs them in one transaction.
func (x *Executor) Sweep(ctx context.Context, due bide.Due) (worker.Report, error) {
	begun := time.Now()
	e, err := x.ledger.LockDue(ctx, due)
	if err != nil {
		return worker.Report{}, classify(err, nil)
	}
	return x.run(ctx, e, bide.ViaSweep, time.Since(begun))
}

// Overdue lists what Sweep would find.
func (x *Executor) Overdue(ctx context.Context, due bide.Due) (worker.Report, error) {
	begun := time.Now()
	tasks, now, err := x.ledger.Overdue(ctx, due)
	if err != nil {
		return worker.Report{}, classify(err, nil)
	}
	report := worker.Report{Now: now, Scan: time.Since(begun), Overdue: tasks}
	count(&report, tasks)
	return report, nil
}

// Retry puts failed tasks off, or gives them up after the attempts.
func (x *Executor) Retry(ctx context.Context, failures []worker.Failure) ([]bide.Ended, error) {
	ids, reasons := make([]int64, len(failures)), make([]string, len(failures))
	for i, f := range failures {
		ids[i], reasons[i] = f.Task.ID, f.Reason
	}
	return x.ledger.Retry(ctx, ids, reasons, x.backoff)
}

// Reclaim records the trial of a suspect.
func (x *Executor) Reclaim(ctx context.Context, id int64) (bide.Ended, bool, error) {
	return x.ledger.Reclaim(ctx, id, mostReclaims)
}

// run calls the handlers for what the execution has locked, and finishes it.
func (x *Executor) run(ctx context.Context, e *outbox.Execution, via bide.Via, scan time.Duration) (worker.Report, error) {
	report := worker.Report{Now: e.Now, Scan: scan, Suspects: e.Suspects}
	count(&report, e.Tasks)
	count(&report, e.Suspects)
	verdicts, err := x.handleInTime(ctx, e, &report)
	if err != nil {
		return worker.Report{}, failedBatch(e, classify(err, e.Conn().Conn()), e.AbortAfter(ctx, err))
	}
	tasks := e.Tasks
	if err := e.Finish(ctx, via, verdicts); err != nil {
		return worker.Report{}, &worker.FailedBatch{Tasks: tasks, Err: classify(err, nil)}
	}
	return report, nil
}

// handleInTime calls the handlers under the execution's bound. What fails
// because the time is used up is not the tasks' fault.
func (x *Executor) handleInTime(ctx context.Context, e *outbox.Execution, report *worker.Report) ([]outbox.Verdict, error) {
	bound, cancel := e.Bound(ctx)
	defer cancel()
	verdicts, err := x.handle(bound, e, report)
	if cause := context.Cause(bound); err != nil && errors.Is(cause, outbox.ErrTooLong) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return verdicts, err
}

// handle calls the handlers, one chunk of one type at a time, and sorts their
// results into the report.
func (x *Executor) handle(ctx context.Context, e *outbox.Execution, report *worker.Report) ([]outbox.Verdict, error) {
	verdicts := make([]outbox.Verdict, 0, len(e.Tasks))
	for i, chunk := range x.chunks(e.Tasks) {
		if i > 0 { // the first has the limit that the transaction began with
			if err := e.Limit(ctx); err != nil {
				return nil, err
			}
		}
		results, err := call(ctx, x.handlers[chunk[0].BizType], e, chunk)
		if err != nil {
			return nil, err
		}
		for j, result := range results {
			sort(report, &verdicts, chunk[j], result)
		}
	}
	return verdicts, nil
}

// chunks splits tasks by type, and each type by its handler's batch size.
func (x *Executor) chunks(tasks []bide.Task) [][]bide.Task {
	var order []string
	byType := map[string][]bide.Task{}
	for _, t := range tasks {
		if byType[t.BizType] == nil {
			order = append(order, t.BizType)
		}
		byType[t.BizType] = append(byType[t.BizType], t)
	}
	var chunks [][]bide.Task
	for _, bizType := range order {
		rest, size := byType[bizType], x.handlers[bizType].Batch()
		for len(rest) > size {
			chunks = append(chunks, rest[:size:size])
			rest = rest[size:]
		}
		chunks = append(chunks, rest)
	}
	return chunks
}

// call runs a handler. Its panic is an error of the batch, not the end of the
// process.
func call(ctx context.Context, h handler.Handler, e *outbox.Execution, tasks []bide.Task) (results []handler.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handler %s panicked: %v\n%s", tasks[0].BizType, p, debug.Stack())
		}
	}()
	results, err = h.Handle(ctx, e.Conn().Conn(), tasks)
	if err == nil && len(results) != len(tasks) {
		err = fmt.Errorf("handler %s gave %d results for %d tasks: want one for each, in order", tasks[0].BizType, len(results), len(tasks))
	}
	return results, err
}

// sort files one task under what its handler said.
func sort(report *worker.Report, verdicts *[]outbox.Verdict, task bide.Task, result handler.Result) {
	switch result.Verdict {
	case handler.Done:
		*verdicts = append(*verdicts, outbox.Verdict{TaskID: task.ID, Result: bide.Done, Note: result.Reason})
		report.Finished = append(report.Finished, worker.Finished{Task: task, Result: bide.Done})
	case handler.Skipped:
		*verdicts = append(*verdicts, outbox.Verdict{TaskID: task.ID, Result: bide.Skipped, Note: result.Reason})
		report.Finished = append(report.Finished, worker.Finished{Task: task, Result: bide.Skipped})
	case handler.Locked:
		report.Busy = append(report.Busy, task)
	default:
		report.Failed = append(report.Failed, worker.Failure{Task: task, Reason: result.Reason})
	}
}

func count(report *worker.Report, tasks []bide.Task) {
	for _, t := range tasks {
		if t.State == bide.Sent {
			report.Sent++
		} else {
			report.Waiting++
		}
	}
}
