package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALogLeavesRepeatsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		drop := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		log := slog.New(withoutRepeats(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: drop})))
		lines := func() []string {
			defer out.Reset()
			return strings.Split(strings.TrimSpace(out.String()), "\n")
		}
		ctx := context.Background()
		for i := range 25 { // over 2.5 s
			log.With("n", i).WarnContext(ctx, "sweep", "err", errors.New("away"))
			<-time.After(100 * time.Millisecond)
		}
		require.Len(t, lines(), 10)
		log.WarnContext(ctx, "peek")
		require.Equal(t, []string{"level=WARN msg=peek"}, lines(), "another message")
		<-time.After(repeatPeriod)
		log.WarnContext(ctx, "sweep")
		require.Equal(t, []string{"level=WARN msg=sweep left_out=15"}, lines())
		log.WarnContext(ctx, "sweep")
		require.Equal(t, []string{"level=WARN msg=sweep"}, lines())
		for range 25 {
			log.ErrorContext(ctx, "task FAILED")
			log.DebugContext(ctx, "halving")
		}
		require.Len(t, lines(), 50, "errors, and what was asked for, are never left out")
	})
}
