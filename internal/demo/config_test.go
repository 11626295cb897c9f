package demo

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	_, err := Run(t.Context(), Config{
		DatabaseURL: "mysql://bide:secret@db/shop", Database: "Bide", BinDir: "nowhere", Broker: "rabbitmq",
		Orders: -1, Duration: -time.Second, MinDelay: 2 * time.Second, MaxDelay: time.Second, Grace: -1,
	}, nil)
	require.EqualError(t, err, `migrate: missing
purge: missing, and the broker is "rabbitmq"
orders -1: want at least 1
duration -1s: want more than 0
greatest delay 1s: want at least the least delay, 2s
grace -1ns: want more than 0
database "Bide": want 1 to 63 of a-z, 0-9 and _, no digit first
database url: want the form postgres://user:password@host:port/database
executable producer in "nowhere": exec: "nowhere/producer": stat nowhere/producer: no such file or directory
executable consumer in "nowhere": exec: "nowhere/consumer": stat nowhere/consumer: no such file or directory`)
}

func TestDatabaseURL(t *testing.T) {
	for raw, want := range map[string]string{
		"postgres://bide:pw@db:5432/shop":           "postgres://bide:pw@db:5432/trial",
		"postgresql://db":                           "postgresql://db/trial",
		"postgres://db/shop?sslmode=disable":        "postgres://db/trial?sslmode=disable",
		"postgres://db/?dbname=shop":                "postgres://db/trial",
		"postgres:///shop?host=%2Frun%2Fpostgresql": "postgres:///trial?host=%2Frun%2Fpostgresql",
	} {
		got, err := databaseURL(raw, "trial")
		require.NoError(t, err, raw)
		require.Equal(t, want, got)
	}
	for _, raw := range []string{"", "host=db password=secret", "postgres://:secret@db:x/", "postgres://u:secret@db/trial", "postgres://u:secret@db/?dbname=trial"} {
		_, err := databaseURL(raw, "trial")
		require.Error(t, err, raw)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestDatabaseIsMadeAnew(t *testing.T) {
	name := namesake(t)
	for range 2 {
		url, err := createDatabase(t.Context(), serverURL(t), name)
		require.NoError(t, err)
		s, err := openShop(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(s.db.Close) // still connected when the next one is made
	}
}

func TestForeignNamesakeIsLeftAlone(t *testing.T) {
	name := namesake(t)
	url, err := createDatabase(t.Context(), serverURL(t), name)
	require.NoError(t, err)
	s, err := openShop(t.Context(), url)
	require.NoError(t, err)
	defer s.db.Close()
	_, err = s.db.Exec(context.Background(), "COMMENT ON DATABASE "+name+" IS 'Ours.'")
	require.NoError(t, err)

	_, err = createDatabase(t.Context(), serverURL(t), name)
	require.ErrorContains(t, err, "that the demo did not make")
	require.NoError(t, s.db.Ping(t.Context()))
}
