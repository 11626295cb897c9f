package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

// Without verify-full to another machine, what travels may be read and forged.
func TestTransportIsExaminedForEveryHost(t *testing.T) {
	t.Parallel()
	for url, exposed := range map[string]string{
		"postgres://a:b@db.internal/shop":                                                            "db.internal",
		"postgres://a:b@db.internal/shop?sslmode=disable":                                            "db.internal",
		"postgres://a:b@db.internal/shop?sslmode=require":                                            "db.internal",
		"postgres://a:b@10.0.0.7,10.0.0.8/shop?sslmode=allow":                                        "10.0.0.7, 10.0.0.8",
		"postgres://a:b@127.0.0.1,db.internal/shop":                                                  "db.internal",
		"postgres://a:b@db.internal/shop?sslmode=verify-full":                                        "",
		"postgres://a:b@127.0.0.1/shop":                                                              "",
		"postgres://a:b@[::1]/shop?sslmode=disable":                                                  "",
		"postgres://a:b@localhost/shop":                                                              "",
		"postgres:///shop?host=/var/run/postgresql":                                                  "",
		"host=db1.internal,db2.internal user=a dbname=shop sslmode=verify-full":                      "",
		"host=db1.internal,db2.internal user=a dbname=shop sslmode=disable target_session_attrs=any": "db1.internal, db2.internal",
	} {
		cfg, err := outbox.PoolConfig(url, 1)
		require.NoError(t, err, url)
		findings := examineTransport(cfg.ConnConfig)
		if exposed == "" {
			require.Empty(t, findings, url)
			continue
		}
		require.Len(t, findings, 1, url)
		require.Equal(t, bide.SeverityWarning, findings[0].Severity)
		require.Equal(t, "connections to "+exposed+" may be unencrypted, or lead to another server", findings[0].Problem, url)
	}
}

func TestServerSettingsAreJudged(t *testing.T) {
	t.Parallel()
	sound := outbox.Diagnosis{ServerVersion: 150000, Isolation: "read committed", DeadlockTimeout: 1000}
	for name, tt := range map[string]struct {
		change func(d *outbox.Diagnosis)
		want   []bide.Severity
	}{
		"sound":                  {func(*outbox.Diagnosis) {}, nil},
		"old server":             {func(d *outbox.Diagnosis) { d.ServerVersion = 130012 }, []bide.Severity{bide.SeverityError}},
		"strict isolation":       {func(d *outbox.Diagnosis) { d.Isolation = "serializable" }, []bide.Severity{bide.SeverityInfo}},
		"short deadlock_timeout": {func(d *outbox.Diagnosis) { d.DeadlockTimeout = 499 }, []bide.Severity{bide.SeverityWarning}},
		"no deadlock_timeout":    {func(d *outbox.Diagnosis) { d.DeadlockTimeout = 9 }, []bide.Severity{bide.SeverityError}},
		"long transaction":       {func(d *outbox.Diagnosis) { d.OldestTransaction = time.Hour }, []bide.Severity{bide.SeverityWarning}},
	} {
		d := sound
		tt.change(&d)
		var got []bide.Severity
		for _, f := range examineServer(d) {
			got = append(got, f.Severity)
		}
		require.Equal(t, tt.want, got, name)
	}
}

// One run on a ledger with several things wrong: each is a finding, the worst
// come first, and the exit code says that there are errors.
func TestDoctorReportsEachFaultTheWorstFirst(t *testing.T) {
	url := pgtest.NewDatabase(t)
	pgtest.Migrate(t, url, outbox.DefaultSchema)
	handlers := filepath.Join(t.TempDir(), "handlers.yaml")
	require.NoError(t, os.WriteFile(handlers, []byte("handlers:\n  a: {lock: shop.none(id), sql: SELECT $1}\n  b: {sql: SELECT 1}\n"), 0o600))
	pool := pgtest.Pool(t, url, 1)
	_, err := pool.Exec(t.Context(), "INSERT INTO bide.delay_task (biz_type, biz_id, fire_at, status) VALUES ('a', '1', now(), 'FAILED')")
	require.NoError(t, err)
	t.Setenv("BIDE_DATABASE_URL", url)
	t.Setenv("BIDE_BROKER", "none")

	doctor := func(want int) (findings []bide.Finding) {
		t.Helper()
		var out, errs bytes.Buffer
		require.Equal(t, want, run([]string{"doctor", "--json", "--handlers", handlers}, &out, &errs), errs.String())
		var read []struct{ Severity, Subject, Problem string }
		require.NoError(t, json.Unmarshal(out.Bytes(), &read))
		for _, f := range read {
			severity := slices.Index([]string{"info", "warning", "error"}, f.Severity)
			findings = append(findings, bide.Finding{Severity: bide.Severity(severity), Subject: f.Subject, Problem: f.Problem})
		}
		require.True(t, slices.IsSortedFunc(findings, bide.WorstFirst), "%v", findings)
		return findings
	}
	subjects := func(findings []bide.Finding) (list []string) {
		for _, f := range findings {
			list = append(list, f.Subject)
		}
		return list
	}
	require.Equal(t, []string{handlers + ":3:12", "tasks"}, subjects(doctor(exitNo)), "a text that is wrong is not held against the database")
	require.NoError(t, os.WriteFile(handlers, []byte("handlers:\n  a: {lock: shop.none(id), sql: SELECT $1}\n  b: {sql: \"SELECT 1 FROM x WHERE y = ANY ($1)\"}\n"), 0o600))
	require.Equal(t, []string{handlers + ":2:13", handlers + ":3:27", "tasks"}, subjects(doctor(exitNo)))
	require.NoError(t, os.WriteFile(handlers, []byte("handlers:\n  a: {sql: SELECT unnest($1)}\n"), 0o600))
	require.Equal(t, []string{"tasks"}, subjects(doctor(exitOK)), "a warning is no error")
}

// Faults of the configuration are findings of their own, each once.
func TestDoctorReportsTheConfigurationsFaults(t *testing.T) {
	t.Setenv("BIDE_NONSENSE", "1")
	t.Setenv("BIDE_BROKER", "kafka")
	var out, errs bytes.Buffer
	require.Equal(t, exitNo, run([]string{"doctor"}, &out, &errs))
	require.Equal(t, `error    configuration: BIDE_BROKER="kafka": want rabbitmq, rocketmq or none
error    configuration: BIDE_DATABASE_URL is not set: want postgres://user:password@host:port/database, or BIDE_DATABASE_URL_FILE
error    configuration: BIDE_NONSENSE: no such variable; see --help
`, out.String())
}
