// Package cmd_test runs the programs as they were built, against real servers.
package cmd_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/pgtest"
)

// One task of each kind goes all the way, and the services tell of it.
func TestOneTaskEndToEnd(t *testing.T) {
	t.Parallel()
	for broker, tt := range map[string]struct {
		settings []string
		via      string
		metrics  map[string][]string
	}{
		"none": {via: "sweep", metrics: map[string][]string{
			"producer": {`bide_tasks{state="FAILED"} 0`, "bide_oldest_overdue_seconds "},
			"consumer": {`bide_tasks_finished_total{biz_type="close_order",result="DONE",via="sweep"} 1`, `bide_lateness_seconds_count{via="sweep"} 2`},
		}},
		"rabbitmq": {settings: rabbit(t), via: "broker", metrics: map[string][]string{
			"producer": {"bide_broker_session 2", "bide_relay_claimed_total 2", `bide_relay_published_total{level="`},
			"consumer": {
				"bide_broker_session 2", "bide_held_tasks 0", `bide_worker_events_total{event="arrived"} 2`, `bide_lateness_seconds_count{via="broker"} 2`,
				`bide_tasks_finished_total{biz_type="close_order",result="DONE",via="broker"} 1`,
				`bide_tasks_finished_total{biz_type="close_order",result="SKIPPED",via="broker"} 1`,
			},
		}},
	} {
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, append(tt.settings, "BIDE_BROKER="+broker)...)
			producer, consumer := s.start(t, "producer"), s.start(t, "consumer")
			for _, p := range []*service{producer, consumer} {
				require.Equal(t, "ok\n", p.get(t, "/healthz"))
				require.Eventually(t, func() bool { return p.get(t, "/readyz") == "ready\n" }, 20*time.Second, 20*time.Millisecond)
				require.Zero(t, s.with("BIDE_LISTEN="+p.listen).run(t, p.name, "healthcheck").code)
			}

			s.exec(t, `BEGIN;
				INSERT INTO shop.orders VALUES (1, 'UNPAID'), (2, 'PAID');
				SELECT bide.schedule_in('close_order', id::text, '1300 ms') FROM shop.orders;
				COMMIT`)
			s.await(t, "SELECT count(*) = 2 FROM bide.delay_task_history")
			s.await(t, "SELECT status = 'CLOSED' FROM shop.orders WHERE id = 1")
			s.await(t, "SELECT status = 'PAID' FROM shop.orders WHERE id = 2")
			s.await(t, "SELECT count(*) = 2 FROM bide.delay_task_history WHERE finished_at >= fire_at AND via = '"+tt.via+"'")

			for _, p := range []*service{producer, consumer} {
				metrics := p.get(t, "/metrics")
				for _, sample := range append(tt.metrics[p.name], "go_goroutines ", "process_resident_memory_bytes ") {
					require.Contains(t, metrics, "\n"+sample, p.name)
				}
				s.requireSecrecy(t, metrics)
			}
			s.requireAnswers(t)
			for _, p := range []*service{producer, consumer} {
				require.Zero(t, p.stop(t), p.name)
				s.requireLog(t, p)
			}
		})
	}
}

// requireAnswers asks the operator's command what became of the tasks.
func (s *site) requireAnswers(t *testing.T) {
	t.Helper()
	var found []struct{ State string }
	tasks := s.run(t, "bide", "tasks", "--type", "close_order", "--json")
	require.Zero(t, tasks.code)
	require.NoError(t, json.Unmarshal([]byte(tasks.out), &found))
	require.Len(t, found, 2)
	require.Zero(t, s.run(t, "bide", "audit").code)
	doctor := s.run(t, "bide", "doctor", "--json")
	require.Zero(t, doctor.code, doctor.out)
	require.True(t, json.Valid([]byte(doctor.out)))
	require.Equal(t, 3, s.run(t, "bide", "cancel", "close_order", "1").code, "it has been executed")
	require.Equal(t, 3, s.run(t, "bide", "requeue", "--all").code, "nothing has failed")
	require.Equal(t, 3, s.run(t, "bide", "tasks", "--state", "FAILED").code)
	for _, r := range []result{tasks, doctor} {
		s.requireSecrecy(t, r.out+r.errs)
	}
}

// requireLog requires JSON lines, none of them an error, down to the last word.
func (s *site) requireLog(t *testing.T, p *service) {
	t.Helper()
	log := p.log.String()
	s.requireSecrecy(t, log)
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range lines {
		var entry struct {
			Time       time.Time
			Level, Msg string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
		require.NotZero(t, entry.Time)
		require.NotEmpty(t, entry.Msg)
		require.Contains(t, []string{"DEBUG", "INFO", "WARN"}, entry.Level, line)
	}
	require.Contains(t, lines[len(lines)-1], p.name+" stopped")
}

func TestServicesEndWellWhileTheyWait(t *testing.T) {
	t.Parallel()
	anywhere := newSite(t, rabbit(t)...)
	for what, setting := range map[string]string{
		"the database": "BIDE_DATABASE_URL=postgres://bide:" + canary + "@127.0.0.1:1/shop",
		"the broker":   "BIDE_RABBITMQ_URL=amqp://bide:" + canary + "@127.0.0.1:1/",
	} {
		for _, name := range []string{"producer", "consumer"} {
			t.Run(name+" waits for "+what, func(t *testing.T) {
				t.Parallel()
				s := anywhere.with(setting)
				p := s.launch(t, name)
				require.Eventually(t, func() bool { return strings.Contains(p.log.String(), `"level":"WARN"`) }, 20*time.Second, 5*time.Millisecond, "it says so")
				require.Zero(t, p.stop(t))
				s.requireSecrecy(t, p.log.String())
			})
		}
	}
}

// Waiting does not help: the service ends, and says what to mend.
func TestServicesEndWithWhatMustBeMended(t *testing.T) {
	t.Parallel()
	anywhere := newSite(t, rabbit(t)...)
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("handlers: {close_order: {sql: SELECT 1, lok: x}}"), 0o600))
	for fault, tt := range map[string]struct{ setting, says string }{
		"no database URL":       {"BIDE_DATABASE_URL=", "BIDE_DATABASE_URL is not set"},
		"a broken database URL": {"BIDE_DATABASE_URL=postgres://bide:" + canary + "%zz@localhost", "BIDE_DATABASE_URL"},
		"a broken broker URL":   {"BIDE_RABBITMQ_URL=amqp://bide:" + canary + "%zz@localhost", "rabbitmq: url"},
		"a URL for a file":      {"BIDE_RABBITMQ_MANAGEMENT_URL_FILE=http://bide:" + canary + "@localhost", "BIDE_RABBITMQ_MANAGEMENT_URL"},
		"a refused user":        {"BIDE_RABBITMQ_URL=" + withPassword(t, rabbitURL(t), canary), "user"},
		"no ledger":             {"BIDE_SCHEMA=another", "bide migrate"},
		"a misspelt variable":   {"BIDE_RABBITMQ_PASSWORD=" + canary, "BIDE_RABBITMQ_PASSWORD: no such variable"},
		"faulty handlers":       {"BIDE_HANDLERS_FILE=" + broken, "broken.yaml:1"},
	} {
		for _, name := range []string{"producer", "consumer"} {
			if name == "producer" && fault == "faulty handlers" {
				continue
			}
			t.Run(name+" with "+fault, func(t *testing.T) {
				t.Parallel()
				s := anywhere.with(tt.setting)
				p := s.launch(t, name)
				select {
				case <-p.ended:
				case <-time.After(20 * time.Second):
					require.Fail(t, "it does not end", p.log.String())
				}
				require.Equal(t, 1, p.code())
				require.Contains(t, p.log.String(), tt.says)
				s.requireSecrecy(t, p.log.String())
			})
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	s := &site{env: []string{"BIDE_LISTEN=127.0.0.1:1"}}
	for _, tt := range []struct {
		call      string
		code      int
		out, errs string
	}{
		{"producer --version", 0, "producer ", ""},
		{"consumer --version", 0, "consumer ", ""},
		{"bide --version", 0, "\n", ""},
		{"producer help", 0, "Exit codes: 0 ", ""},
		{"consumer -h", 0, "Exit codes: 0 ", ""},
		{"bide --help", 0, "Exit codes: 0 ", ""},
		{"producer --frob", 2, "", `unknown argument "--frob"`},
		{"consumer healthcheck now", 2, "", "unknown argument"},
		{"bide frob", 2, "", "frob"},
		{"producer", 1, "", "BIDE_DATABASE_URL is not set"},
		{"bide tasks", 1, "", "BIDE_DATABASE_URL is not set"},
		{"producer healthcheck", 1, "", "connection refused"},
		{"consumer healthcheck", 1, "", "connection refused"},
		{"bide plan 25m", 0, "level", ""},
	} {
		args := strings.Fields(tt.call)
		r := s.run(t, args[0], args[1:]...)
		require.Equal(t, tt.code, r.code, "%s: %s", tt.call, r.errs)
		require.Contains(t, r.out, tt.out, tt.call)
		require.Contains(t, r.errs, tt.errs, tt.call)
	}
}

func TestHelpListsEveryVariable(t *testing.T) {
	t.Parallel()
	s := &site{}
	for name, spec := range specs() {
		help := s.run(t, name, "--help").out
		names := variables(spec)
		require.Greater(t, len(names), 30)
		for _, variable := range names {
			require.Contains(t, help, "\n  "+variable+" ", name)
		}
	}
}

// get returns what a service answers.
func (p *service) get(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.listen+path, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

// exec runs SQL in the site's database, as the shop does.
func (s *site) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := s.pool.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// await waits until a query says true.
func (s *site) await(t *testing.T, sql string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var is bool
		return s.pool.QueryRow(context.WithoutCancel(t.Context()), sql).Scan(&is) == nil && is
	}, 20*time.Second, 10*time.Millisecond, sql)
}

func openShop(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t, url, 2)
	_, err := pool.Exec(t.Context(), "CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint PRIMARY KEY, status text NOT NULL)")
	require.NoError(t, err)
	return pool
}
