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
		if unavailable(server.Code) {
			return fmt.Errorf("%w: %w", worker.ErrUnavailable, err)
		}
		return err
	case errors.Is(err, outbox.ErrTooLong):
		return err
	case errors.Is(err, outbox.ErrFinish), conn != nil && conn.IsClosed():
		return fmt.Errorf("%w: %w", worker.ErrLost, err)
	case conn == nil, errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", worker.ErrUnavailable, err)
	default:
		return err
	}
}

// unavailable reports SQLSTATEs with which the server says that it cannot
// serve now, whatever it is asked.
func unavailable(code string) bool {
	switch code {
	case "57P01", "57P02", "57P03", // shut down, another session crashed, starting up
		"25006": // read-only: demoted to a replica
		return true
	}
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "53") // connection, resources
}

// failedBatch ends a failed execution. A rollback that fails closes the
// connection, which rolls back as well.
func failedBatch(e *outbox.Execution, err, abortErr error) error {
	return &worker.FailedBatch{Tasks: e.Tasks, Err: errors.Join(err, abortErr)}
}
