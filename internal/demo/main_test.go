package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bide-mq/bide/outbox"
)

// TestMain lets the test's own executable play a service, so that what the
// demo does with processes, and with engines that break promises, can be seen.
func TestMain(m *testing.M) {
	if part := os.Getenv(partVariable); part != "" {
		os.Exit(play(part))
	}
	goleak.VerifyTestMain(m)
}

// serverURL is the test server's address.
func serverURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("BIDE_TEST_DATABASE_URL")
	require.NotEmpty(t, url, "BIDE_TEST_DATABASE_URL is not set: `make test` provides a server")
	return url
}

// namesake is a database name of the test's own; the database is dropped when
// the test ends.
func namesake(t *testing.T) string {
	t.Helper()
	url, name := serverURL(t), "bide_demo_"+strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), url)
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		require.NoError(t, err)
	})
	return name
}

// newShop opens a shop with a ledger in a database of the test's own.
func newShop(t *testing.T) *shop {
	t.Helper()
	url, err := createDatabase(t.Context(), serverURL(t), namesake(t))
	require.NoError(t, err)
	require.NoError(t, migrate(t.Context(), url))
	s, err := openShop(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(s.db.Close)
	return s
}

func migrate(ctx context.Context, databaseURL string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = outbox.Migrate(ctx, conn, outbox.DefaultSchema)
	return err
}

// closeOrderSQL is the statement that the demo hands to its consumers.
func closeOrderSQL() (string, error) {
	var file struct {
		Handlers map[string]struct{ SQL string }
	}
	if err := yaml.Unmarshal(handlersYAML, &file); err != nil {
		return "", err
	}
	sql := file.Handlers["close_order"].SQL
	if sql == "" {
		return "", fmt.Errorf("no close_order among the handlers")
	}
	return sql, nil
}
