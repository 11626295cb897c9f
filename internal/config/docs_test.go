package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// row is a variable's row in a table of docs/configuration.md: name, default.
var row = regexp.MustCompile("(?m)^\\| `(BIDE_[A-Z_]+)`(?: \\*)? \\| ([^|]*) \\|")

func TestEveryVariableIsDocumentedWithItsDefault(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	documented := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		require.NotContains(t, documented, m[1], "%s has two rows", m[1])
		documented[m[1]] = m[2]
	}
	for _, spec := range []any{&Producer{}, &Consumer{}} {
		for _, v := range variables(spec) {
			require.Contains(t, documented, v.name, "docs/configuration.md has no row for it")
			if v.fallback == "" {
				require.Equal(t, "–", documented[v.name], "default of %s", v.name)
				continue
			}
			require.Contains(t, documented[v.name], "`"+v.fallback+"`", "default of %s", v.name)
		}
	}
	for name := range documented {
		require.True(t, known()[name], "%s is documented and does not exist", name)
	}
}

func TestHelpSaysUnitAndMeaningOfEveryVariable(t *testing.T) {
	t.Parallel()
	for _, spec := range []any{&Producer{}, &Consumer{}} {
		for _, v := range variables(spec) {
			require.True(t, strings.HasSuffix(v.text, "."), "%s: %q is no sentence", v.name, v.text)
			if _, err := time.ParseDuration(v.fallback); err == nil {
				require.Contains(t, v.text, "duration", "unit of %s", v.name)
			}
		}
	}
}
