package handler_test

import (
	"context"
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

	many, err := handler.InBatches(50, f)
	require.NoError(t, err)
	require.Equal(t, 50, many.Batch())

	for _, n := range []int{-1, 0, 1001} {
		_, err := handler.InBatches(n, f)
		require.ErrorContains(t, err, "want 1 to 1000")
	}
}

func TestVerdictsAreReadable(t *testing.T) {
	t.Parallel()
	require.Equal(t, "skipped done retry locked verdict(9)",
		handler.Skipped.String()+" "+handler.Done.String()+" "+handler.Retry.String()+" "+handler.Locked.String()+" "+handler.Verdict(9).String())
	require.Equal(t, handler.Skipped, handler.Result{}.Verdict)
}
