package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/outbox"
)

// kind is the error that says that it was not the tasks' fault, or nil.
func kind(err error) error {
	for _, kind := range []error{worker.ErrLost, worker.ErrUnavailable, worker.ErrContended} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}

// Whose fault an error is depends on what it says, and on whether the tasks
// were being executed.
func TestClassify(t *testing.T) {
	t.Parallel()
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), pgtest.ServerURL(t))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	living, dead := connect(), connect()
	require.NoError(t, dead.Close(t.Context()))
	server := func(code string) error { return fmt.Errorf("execute: %w", &pgconn.PgError{Code: code}) }
	own := errors.New("own")
	for name, tt := range map[string]struct {
		err  error
		conn *pgx.Conn
		want error // nil: the tasks' own
	}{
		"terminated while executing":        {server("57P01"), living, worker.ErrLost},
		"terminated before":                 {server("57P01"), nil, worker.ErrUnavailable},
		"another session crashed":           {server("57P02"), living, worker.ErrUnavailable},
		"starting up":                       {server("57P03"), nil, worker.ErrUnavailable},
		"demoted":                           {server("25006"), living, worker.ErrUnavailable},
		"too many connections":              {server("53300"), nil, worker.ErrUnavailable},
		"disk full":                         {server("53100"), living, worker.ErrUnavailable},
		"connection failure":                {server("08006"), living, worker.ErrUnavailable},
		"statement timeout":                 {server("57014"), living, worker.ErrContended},
		"lock not available":                {server("55P03"), living, worker.ErrContended},
		"deadlock":                          {server("40P01"), living, worker.ErrContended},
		"serialization":                     {server("40001"), living, worker.ErrContended},
		"idle in transaction":               {server("25P03"), living, worker.ErrContended},
		"out of its time":                   {fmt.Errorf("limit: %w", outbox.ErrTooLong), living, worker.ErrContended},
		"division by zero":                  {server("22012"), living, nil},
		"no such column":                    {server("42703"), living, nil},
		"a raised exception":                {server("P0001"), living, nil},
		"the handler's own":                 {own, living, nil},
		"the handler's own, on a dead conn": {own, dead, worker.ErrLost},
		"cut off":                           {io.ErrUnexpectedEOF, dead, worker.ErrLost},
		"cut off at the commit":             {fmt.Errorf("%w: %w", outbox.ErrFinish, io.ErrUnexpectedEOF), nil, worker.ErrLost},
		"refused at the commit":             {fmt.Errorf("%w: %w", outbox.ErrFinish, server("23503")), nil, nil},
		"never connected":                   {io.ErrUnexpectedEOF, nil, worker.ErrUnavailable},
		"stopped":                           {context.Canceled, living, worker.ErrUnavailable},
	} {
		got := classify(tt.err, tt.conn)
		require.ErrorIs(t, got, tt.err, name)
		require.Equal(t, tt.want, kind(got), name)
	}
}
