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
