package config

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestUsageListsEachVariableOnce(t *testing.T) {
	t.Parallel()
	for _, spec := range []any{&Producer{}, &Consumer{}} {
		var out bytes.Buffer
		Usage(&out, spec)
		for _, v := range variables(spec) {
			require.Equal(t, 1, strings.Count(out.String(), "  "+v.name+" "), v.name)
		}
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len(strings.TrimSpace(line)), 160)
		}
	}
}

func TestWrapKeepsTheWordsAndTheWidth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-z]{1,12}`)).Draw(t, "words")
		wrapped := wrap(strings.Join(words, " "), 20)
		require.Equal(t, words, append([]string{}, strings.Fields(wrapped)...))
		for line := range strings.Lines(wrapped) {
			require.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 20)
		}
	})
}
