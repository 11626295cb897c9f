package integration

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/relay"
	"github.com/bide-mq/bide/internal/worker"
)

// failpoint is a place where a process kills itself.
type failpoint string

const (
	beforePublish failpoint = "between claim and publish"
	beforeSettle  failpoint = "between confirm and journal delete"
	beforeCommit  failpoint = "before commit"
	beforeAck     failpoint = "between commit and acknowledgement"
	atPoison      failpoint = "in a poisonous task"
)

// relay returns a relay that dies there.
func (p failpoint) relay() (spec relaySpec) {
	switch p {
	case beforePublish:
		spec.publisher = func(inner bide.Publisher) bide.Publisher { return deadlyPublisher{inner} }
	case beforeSettle:
		spec.ledger = func(inner relay.Ledger) relay.Ledger { return deadlyLedger{inner} }
	default: // lives
	}
	return spec
}

// worker returns a worker that dies there.
func (p failpoint) worker() (spec workerSpec) {
	switch p {
	case beforeCommit:
		spec.handler = func(h handler.Handler) handler.Handler { return faultyHandler{Handler: h, after: die} }
	case atPoison:
		spec.handler = poisonable(func(*pgx.Conn) error { die(); return nil })
	case beforeAck:
		spec.executor = func(inner worker.Executor) worker.Executor { return deadlyExecutor{inner} }
	default: // lives
	}
	return spec
}

type deadlyPublisher struct{ bide.Publisher }

func (deadlyPublisher) Publish(context.Context, []bide.Send) []bide.Outcome {
	die()
	return nil
}

type deadlyLedger struct{ relay.Ledger }

func (deadlyLedger) Settle(context.Context, int64, []int64) error {
	die()
	return nil
}

type deadlyExecutor struct{ worker.Executor }

func (x deadlyExecutor) Execute(ctx context.Context, ids []int64, mode worker.Mode) (worker.Report, error) {
	report, err := x.Executor.Execute(ctx, ids, mode)
	if err == nil && len(report.Finished) > 0 {
		die()
	}
	return report, err
}

// faultyHandler puts faults around a handler.
type faultyHandler struct {
	handler.Handler
	before func(ctx context.Context, conn *pgx.Conn, tasks []bide.Task) error
	after  func()
}

func (f faultyHandler) Handle(ctx context.Context, conn *pgx.Conn, tasks []bide.Task) ([]handler.Result, error) {
	if f.before != nil {
		if err := f.before(ctx, conn, tasks); err != nil {
			return nil, err
		}
	}
	results, err := f.Handler.Handle(ctx, conn, tasks)
	if f.after != nil {
		f.after()
	}
	return results, err
}

// poison is the payload that a poisonable handler cannot stand.
const poison = `"poison"`

// poisonable makes handlers suffer an effect when they meet poison.

func poisonable(effect func(conn *pgx.Conn) error) func(handler.Handler) handler.Handler {
	return func(h handler.Handler) handler.Handler {
		return faultyHandler{Handler: h, before: func(_ context.Context, conn *pgx.Conn, tasks []bide.Task) error {
			if slices.ContainsFunc(tasks, func(t bide.Task) bool { return string(t.Payload) == poison }) {
				return effect(conn)
			}
			return nil
		}}
	}
}

// setPoison gives the order's task the payload that kills.
func (s *shop) setPoison(ctx context.Context, o order) error {
	_, err := s.pool.Exec(ctx, "SELECT bide.schedule('close_order', $1, $2, $3)", o.key(), o.deadline, poison)
	return err
}

// errRolledBack is why an execution that was stuck fails.
var errRolledBack = errors.New("rolled back")

// stuck makes a handler's first execution say that it has begun, and end only
// when it is told to, with the error given.
func stuck(begun chan<- struct{}, end <-chan struct{}, result error) func(handler.Handler) handler.Handler {
	var once sync.Once
	return func(h handler.Handler) handler.Handler {
		return faultyHandler{Handler: h, before: func(context.Context, *pgx.Conn, []bide.Task) (err error) {
			once.Do(func() {
				close(begun)
				<-end
				err = result
			})
			return err
		}}
	}
}
