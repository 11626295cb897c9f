package service

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

func open(t *testing.T, url string, migrate bool) (*outbox.Ledger, func(), error) {
	t.Helper()
	pool, ledger, err := OpenLedger(t.Context(), config.Database{DatabaseURL: url, Schema: "bide"}, migrate, 2, slog.New(slog.DiscardHandler))
	if err != nil {
		require.Nil(t, pool)
		return nil, nil, err
	}
	t.Cleanup(pool.Close)
	return ledger, pool.Close, nil
}

// Waiting helps against nothing but a database that does not answer.
func TestOpenLedgerGivesUpWhereWaitingDoesNotHelp(t *testing.T) {
	t.Parallel()
	empty := pgtest.NewDatabase(t)
	_, _, err := open(t, empty, false)
	require.ErrorIs(t, err, outbox.ErrNotMigrated)
	_, _, err = open(t, pgtest.WithDatabase(t, empty, "bide_there_is_none"), true)
	require.ErrorContains(t, err, "does not exist")
}

func TestOpenLedgerMigratesWhenAskedTo(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	migrated, _, err := open(t, url, true)
	require.NoError(t, err)
	again, _, err := open(t, url, false)
	require.NoError(t, err)
	require.Equal(t, migrated.ID(), again.ID())
}

func TestReadyIsLedgerAndSession(t *testing.T) {
	t.Parallel()
	ledger, away, err := open(t, pgtest.NewDatabase(t), true)
	require.NoError(t, err)
	down := errors.New("the broker session is down")
	up := func() error { return nil }
	require.NoError(t, Ready(ledger, up)(t.Context()))
	require.Equal(t, down, Ready(ledger, func() error { return down })(t.Context()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, Ready(ledger, up)(ended), "the ledger does not answer")
	away()
	require.EqualError(t, Ready(ledger, up)(t.Context()), "the ledger does not answer")
}
