package outbox_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

const canary = "c4n4ry-p4ssw0rd"

func TestABadDatabaseURLIsRefusedWithoutQuotingIt(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"postgres://bide:" + canary + "@host:port/db",
		"postgres://bide:" + canary + "@host/db?sslmode=sometimes",
		"postgres://bide:" + canary + "%zz@host/db",
		"host=x password=" + canary + " port=none",
		"postgres://bide:" + canary + "@host/db?pool_max_conns=many",
		"mysql://bide:" + canary + "@host/db",
		canary,
	} {
		_, err := outbox.PoolConfig(bad, 1)
		require.ErrorContains(t, err, "database URL")
		require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), canary)
	}
}

func TestAMissingCertificateIsNamed(t *testing.T) {
	t.Parallel()
	_, err := outbox.PoolConfig("postgres://bide:"+canary+"@host/db?sslmode=verify-full&sslrootcert=/nowhere/ca.pem", 1)
	require.EqualError(t, err, "database URL: open /nowhere/ca.pem: no such file or directory")
}

func TestAFailedConnectionDoesNotTellThePassword(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(pgtest.ServerURL(t))
	require.NoError(t, err)
	nobodyListens, wrongPassword := *address, *address
	nobodyListens.Host, nobodyListens.User = "127.0.0.1:1", url.UserPassword("bide", canary)
	wrongPassword.User = url.UserPassword(address.User.Username(), canary)
	for _, u := range []url.URL{nobodyListens, wrongPassword} {
		cfg, err := outbox.PoolConfig(u.String(), 1)
		require.NoError(t, err)
		pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		_, err = outbox.Open(t.Context(), pool, outbox.DefaultSchema)
		require.Error(t, err)
		require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), canary)
		require.Equal(t, u.Host == nobodyListens.Host, outbox.Unreachable(err), "waiting helps only where nobody answers")
	}
}
