package outbox_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

// A database administrator may make the schema and give nothing more away.
func TestMigrateInASchemaMadeForIt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := pgtest.NewDatabase(t)
	admin := pgtest.Pool(t, server, 1)
	role := pgtest.Database(t, server) + "_owner"
	_, err := admin.Exec(ctx, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD 'owner';
		CREATE SCHEMA bide AUTHORIZATION %[1]s`, role))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := admin.Exec(ctx, fmt.Sprintf("DROP OWNED BY %[1]s CASCADE; DROP ROLE %[1]s", role))
		require.NoError(t, err)
	})

	address, err := url.Parse(server)
	require.NoError(t, err)
	address.User = url.UserPassword(role, "owner")
	conn, err := pgx.Connect(ctx, address.String())
	require.NoError(t, err)
	defer conn.Close(ctx)
	for range 2 {
		_, err = outbox.Migrate(ctx, conn, outbox.DefaultSchema)
		require.NoError(t, err)
	}
}
