package handler_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/handler"
)

func TestFuncTakesEachTaskAlone(t *testing.T) {
	t.Parallel()
	f := handler.Func(func(_ context.Context, _ pgx.Tx, tasks []bide.Task) ([]handler.Result, error) {
		return make([]handler.Result, len(tasks)), nil
	})
	require.Equal(t, 1, f.Batch())

	require.Equal(t, 50, handler.InBatches(50, f).Batch())
}

func TestHandlersInGoAreChecked(t *testing.T) {
	t.Parallel()
	f := handler.Func(func(context.Context, pgx.Tx, []bide.Task) ([]handler.Result, error) { return nil, nil })
	require.NoError(t, handler.Check("close_order", f))
	require.NoError(t, handler.Check(strings.Repeat("x", 512), handler.InBatches(1000, f)))
	for want, err := range map[string]error{
		"want a biz_type of 1 to 512 bytes": handler.Check("", f),
		"xxx…":                              handler.Check(strings.Repeat("x", 513), f),
		"is nil":                            handler.Check("close_order", nil),
		"batch of 0 tasks: want 1 to 1000":  handler.Check("close_order", handler.InBatches(0, f)),
		"batch of 1001 tasks":               handler.Check("close_order", handler.InBatches(1001, f)),
	} {
		require.ErrorContains(t, err, strings.TrimSuffix(want, "…"))
	}
}

func TestVerdictsAreReadable(t *testing.T) {
	t.Parallel()
	require.Equal(t, "skipped done retry locked verdict(9)",
		handler.Skipped.String()+" "+handler.Done.String()+" "+handler.Retry.String()+" "+handler.Locked.String()+" "+handler.Verdict(9).String())
	require.Equal(t, handler.Skipped, handler.Result{}.Verdict)
}
