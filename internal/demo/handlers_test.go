package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/handler"
)

// The consumers will take the file, and have nothing to say against it.
func TestHandlersFileIsSound(t *testing.T) {
	s := newShop(t)
	set, err := handler.Parse("handlers.yaml", handlersYAML)
	require.NoError(t, err)
	require.NoError(t, set.Prepare(t.Context(), s.db))
	require.Contains(t, set.Handlers(), "close_order")
	advice, err := set.Advise(t.Context(), s.db)
	require.NoError(t, err)
	require.Empty(t, advice)
}
