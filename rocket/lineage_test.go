package rocket

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

func TestLineageNamesDescendants(t *testing.T) {
	cfg := Config{Ledger: bide.LedgerID{1}}
	a, b := newLineage(cfg), newLineage(cfg)
	first, second, other := "10.0.0.1@"+a.next(), "10.0.0.1@"+a.next(), "10.0.0.1@"+b.next()
	require.Equal(t, []string{second, other}, living([]string{first, second, other}))
	require.Equal(t, []string{other, second}, living([]string{other, second, first}), "the order stays")
}

func TestLiving(t *testing.T) {
	for _, tt := range []struct {
		name          string
		clients, want []string
	}{
		{"nobody", nil, nil},
		{"one", []string{"h@bide-worker-l-a-1"}, []string{"h@bide-worker-l-a-1"}},
		{"numbers, not texts", []string{"h@bide-worker-l-a-10", "h@bide-worker-l-a-9"}, []string{"h@bide-worker-l-a-10"}},
		{"an address of its own each", []string{"h@bide-worker-l-a-2", "i@bide-worker-l-a-1"}, []string{"h@bide-worker-l-a-2", "i@bide-worker-l-a-1"}},
		{"strangers", []string{"h@console-1", "h@console-2", "h@123"}, []string{"h@console-1", "h@console-2", "h@123"}},
		{"no number", []string{"h@bide-worker-l-a-", "h@bide-worker-l-a-x"}, []string{"h@bide-worker-l-a-", "h@bide-worker-l-a-x"}},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, living(tt.clients)) })
	}
}
