package service

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/config"
)

func TestHelpTellsUsageExitCodesAndVariables(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	Command{Name: "producer", Summary: "producer relays.", Spec: &config.Producer{}}.help(&out)
	for _, part := range []string{
		"producer relays.\n", "producer healthcheck", "producer --version", "Exit codes: 0 ", "BIDE_DATABASE_URL ", "BIDE_POLL_INTERVAL ",
	} {
		require.Contains(t, out.String(), part)
	}
}
