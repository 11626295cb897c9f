package consumer

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/pgtest"
)

func TestHandlersInGoNeedNoFile(t *testing.T) {
	t.Parallel()
	inGo := map[string]Handler{"remind": Func(func(context.Context, pgx.Tx, []Task) ([]Result, error) { return nil, nil })}
	file, err := loadHandlers(filepath.Join(t.TempDir(), "missing.yaml"), inGo)
	require.NoError(t, err)
	all, err := prepare(t.Context(), file, inGo, pgtest.New(t))
	require.NoError(t, err)
	require.Len(t, all, 1)
}

func TestMissingFileIsNamed(t *testing.T) {
	t.Parallel()
	_, err := loadHandlers("missing.yaml", nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, `BIDE_HANDLERS_FILE="missing.yaml"`)
}

// What is wrong with the program is reported with what is wrong with its
// environment.
func TestFaultyHandlersInGoAreReportedAtTheStart(t *testing.T) {
	t.Setenv("BIDE_BROKER", "none")
	t.Setenv("BIDE_SLACK", "1h")
	f := Func(func(context.Context, pgx.Tx, []Task) ([]Result, error) { return nil, nil })
	o := options{handlers: map[string]Handler{}}
	for _, opt := range []Option{WithHandler("remind", f), WithHandler("remind", f), WithHandler("thank", InBatches(0, f)), WithHandler("", nil)} {
		opt(&o)
	}
	err := run(t.Context(), o)
	for _, want := range []string{
		"BIDE_SLACK=1h0m0s: want", "BIDE_DATABASE_URL is not set", `handler "remind": given twice, want one`,
		`handler "thank": batch of 0 tasks: want 1 to 1000`, `handler "": want a biz_type`,
	} {
		require.ErrorContains(t, err, want)
	}
}
