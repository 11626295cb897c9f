package outbox_test

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestMain drops the template at the end. It leaves the number of random runs to -rapid.checks, but starts from
// fewer than rapid's 100: one of the ledger's takes a quarter of a second.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	code := m.Run()
	if migrated.name != "" {
		dropTemplate(context.Background())
	}
	os.Exit(code)
}

func dropTemplate(ctx context.Context) {
	conn, err := pgx.Connect(ctx, os.Getenv("BIDE_TEST_DATABASE_URL"))
	mustExample(err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "DROP DATABASE "+migrated.name+" WITH (FORCE)")
	mustExample(err)
}
