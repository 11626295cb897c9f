package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/config"
)

// A service that is asked to end while it still waits for something has not
// failed.
func TestASignalBeforeTheStartIsNoFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		err  func(ctx context.Context) error
		want int
	}{
		"stopped while waiting": {func(ctx context.Context) error { return fmt.Errorf("open: %w", ctx.Err()) }, ExitOK},
		"stopped":               {func(context.Context) error { return nil }, ExitOK},
		"a fault at the end":    {func(context.Context) error { return errors.New("broken") }, ExitFailure},
	} {
		t.Run(name, func(t *testing.T) {
			code := Command{Name: "test", Run: func(ctx context.Context) error {
				require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
				<-ctx.Done()
				return tt.err(ctx)
			}}.Main(nil)
			require.Equal(t, tt.want, code)
		})
	}
}

func TestWaitingForTheDatabaseEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	warned := &signalWriter{heard: cancel}
	nobody := config.Database{DatabaseURL: "postgres://bide:secret@127.0.0.1:1/shop", Schema: "bide"}
	_, _, err := OpenLedger(ctx, nobody, false, 1, slog.New(slog.NewTextHandler(warned, nil)))
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, warned.text.String(), "the database does not answer yet")
	require.NotContains(t, warned.text.String(), "secret")
}

// signalWriter keeps what is written and tells that something was.
type signalWriter struct {
	text  bytes.Buffer
	heard func()
}

func (w *signalWriter) Write(p []byte) (int, error) {
	defer w.heard()
	return w.text.Write(p)
}
