package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/outbox"
)

// classify says whose fault an error is. conn is the execution's connection,
// nil when it was never there or has been given back.
func classify(err error, conn *pgx.Conn) error {
	var server *pgconn.PgError
	switch {
	case errors.As(err, &server):
		return classifyServer(err, server.Code, conn != nil)
	case errors.Is(err, outbox.ErrTooLong):
		return fmt.Errorf("%w: %w", worker.ErrContended, err)
	case errors.Is(err, outbox.ErrFinish), conn != nil && conn.IsClosed():
		return fmt.Errorf("%w: %w", worker.ErrLost, err)
	case conn == nil, errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", worker.ErrUnavailable, err)
	default:
		return err
	}
}

// classifyServer goes by the SQLSTATE.
func classifyServer(err error, code string, executing bool) error {
	switch code {
	case "57P01": // ended by the server's shutdown, or for what it was executing
		if executing {
			return fmt.Errorf("%w: %w", worker.ErrLost, err)
		}
		return fmt.Errorf("%w: %w", worker.ErrUnavailable, err)
	case "57P02", "57P03", // another session crashed, starting up
		"25006": // read-only: demoted to a replica
		return fmt.Errorf("%w: %w", worker.ErrUnavailable, err)
	case "57014", "55P03", "40P01", "40001", "25P03": // time-outs, deadlock, serialization
		return fmt.Errorf("%w: %w", worker.ErrContended, err)
	}
	if strings.HasPrefix(code, "08") || strings.HasPrefix(code, "53") { // connection, resources
		return fmt.Errorf("%w: %w", worker.ErrUnavailable, err)
	}
	return err
}

// failedBatch ends a failed execution. A rollback that fails closes the
// connection, which rolls back as well.
func failedBatch(e *outbox.Execution, err, abortErr error) error {
	return &worker.FailedBatch{Tasks: e.Tasks, Err: errors.Join(err, abortErr)}
}
