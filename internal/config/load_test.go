package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide/levels"
)

const (
	database = "postgres://bide:secret@localhost/shop"
	rabbit   = "amqp://bide:secret@localhost/"
	canary   = "c4n4ry-p4ssw0rd"
)

// environment sets these BIDE_ variables and no others.
func environment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "BIDE_") {
			t.Setenv(name, value) // puts it back in the end
			require.NoError(t, os.Unsetenv(name))
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

// with adds variables to ones that suffice.
func with(variables map[string]string) map[string]string {
	all := map[string]string{"BIDE_DATABASE_URL": database, "BIDE_RABBITMQ_URL": rabbit}
	maps.Copy(all, variables)
	return all
}

func TestTwoURLsSuffice(t *testing.T) {
	environment(t, with(nil))
	producer, err := LoadProducer()
	require.NoError(t, err)
	require.Equal(t, database, producer.DatabaseURL)
	require.Equal(t, "bide", producer.Schema)
	require.Equal(t, rabbit, producer.RabbitURL)
	require.Equal(t, levels.RabbitMQ(), producer.Tiers())
	require.Equal(t, "127.0.0.1:9464", producer.Listen)
	require.Equal(t, 100*time.Millisecond, producer.DriverLead())
	level, err := producer.Level()
	require.NoError(t, err)
	require.Equal(t, slog.LevelInfo, level)
	consumer, err := LoadConsumer()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:9465", consumer.Listen)
	require.Equal(t, "handlers.yaml", consumer.HandlersFile)
	require.Equal(t, 4, consumer.Executions)
	require.Equal(t, 30*24*time.Hour, consumer.Retention)
}

func TestEachBrokerNeedsItsOwn(t *testing.T) {
	for _, tt := range []struct {
		broker, needs string
	}{
		{"none", ""},
		{"rabbitmq", "BIDE_RABBITMQ_URL is not set"},
		{"rocketmq", "BIDE_ROCKETMQ_NAME_SERVERS is not set"},
		{"kafka", `BIDE_BROKER="kafka": want rabbitmq, rocketmq or none`},
	} {
		environment(t, map[string]string{"BIDE_DATABASE_URL": database, "BIDE_BROKER": tt.broker})
		_, err := LoadProducer()
		if tt.needs == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tt.needs)
		require.Len(t, faults(err), 1)
	}
}

// faults lists the faults of an error, one a line.
func faults(err error) []string { return strings.Split(err.Error(), "\n") }

func TestFaultsNameTheVariableTheValueAndWhatIsRight(t *testing.T) {
	for name, values := range map[string][]string{
		"BIDE_SCHEMA":             {"", "Bide", "1st", "pg_bide", strings.Repeat("s", 64)},
		"BIDE_BROKER":             {"", "RabbitMQ"},
		"BIDE_SLACK":              {"", "0", "19ms", "401ms", "-1s", "250"},
		"BIDE_LEAD":               {"481ms", "-1ms", "soon"},
		"BIDE_RABBITMQ_TIERS":     {"", "10s 1s", "1s 1s", "0s", "1x", "99999999999h"},
		"BIDE_LISTEN":             {"", "9464", "a:b:c"},
		"BIDE_POLL_INTERVAL":      {"4ms", "126ms", "0"},
		"BIDE_BATCH_LEASE":        {"9s", "11m"},
		"BIDE_LOG_LEVEL":          {"", "loud"},
		"BIDE_LOG_FORMAT":         {"", "xml"},
		"BIDE_SHUTDOWN_TIMEOUT":   {"999ms", "6m", "10"},
		"BIDE_MIGRATE":            {"", "perhaps"},
		"BIDE_EXECUTIONS":         {"0", "65", "four", "4.5", ""},
		"BIDE_BATCH_WAIT":         {"0s", "1001ms"},
		"BIDE_SWEEP_INTERVAL":     {"9ms", "11s", "-1s"},
		"BIDE_SWEEP_GRACE":        {"249ms", "61m"},
		"BIDE_MAX_ATTEMPTS":       {"0", "1001"},
		"BIDE_RETRY_FIRST":        {"99ms", "61m"},
		"BIDE_RETRY_MOST":         {"999ms", "25h"},
		"BIDE_RETENTION":          {"23h", "-1h"},
		"BIDE_RABBITMQ_CONSUMERS": {"0", "65"},
		"BIDE_RABBITMQ_PREFETCH":  {"0", "2001"},
		"BIDE_ROCKETMQ_MODE":      {"", "fast"},
		"BIDE_ROCKETMQ_HORIZON":   {"-1s", "2401h"},
		"BIDE_ROCKETMQ_MAX_DELAY": {"-1s", "9000h"},
	} {
		for _, value := range values {
			environment(t, with(map[string]string{name: value}))
			_, producer := LoadProducer()
			_, consumer := LoadConsumer()
			err := errors.Join(producer, consumer)
			require.ErrorContains(t, err, name, "%s=%q", name, value)
			require.ErrorContains(t, err, "want", "%s=%q", name, value)
		}
	}
}

func TestTheLimitsThemselvesAreRight(t *testing.T) {
	for name, values := range map[string][]string{
		"BIDE_SLACK": {"200ms", "400ms"}, "BIDE_LEAD": {"0s", "250ms"}, "BIDE_POLL_INTERVAL": {"5ms", "125ms"},
		"BIDE_BATCH_LEASE": {"10s", "10m"}, "BIDE_SHUTDOWN_TIMEOUT": {"1s", "5m"}, "BIDE_EXECUTIONS": {"1", "64"},
		"BIDE_BATCH_WAIT": {"1ms", "1s"}, "BIDE_SWEEP_INTERVAL": {"0s", "10ms", "10s"}, "BIDE_SWEEP_GRACE": {"250ms", "1h"},
		"BIDE_RETRY_MOST": {"1s", "24h"}, "BIDE_RETENTION": {"24h"}, "BIDE_LOG_LEVEL": {"DEBUG", "warn", "error"},
		"BIDE_LISTEN": {":9464", "[::1]:0", "0.0.0.0:80"}, "BIDE_MIGRATE": {"1", "TRUE"},
	} {
		for _, value := range values {
			environment(t, with(map[string]string{name: value}))
			_, producer := LoadProducer()
			_, consumer := LoadConsumer()
			require.NoError(t, errors.Join(producer, consumer), "%s=%s", name, value)
		}
	}
}

func TestLeadAndSlackTogetherAreBounded(t *testing.T) {
	environment(t, with(map[string]string{"BIDE_LEAD": "300ms", "BIDE_SLACK": "250ms"}))
	_, err := LoadConsumer()
	require.EqualError(t, err, "BIDE_LEAD and BIDE_SLACK are 550ms together: want at most 500ms, the longest that messages may be held")
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	wrong := map[string]string{
		"BIDE_DATABASE_URL": "mysql://localhost", "BIDE_SCHEMA": "Bide", "BIDE_RABBITMQ_URL": "", "BIDE_RABBITMQ_TIERS": "9s 1s",
		"BIDE_LEAD": "soon", "BIDE_LISTEN": "here", "BIDE_LOG_LEVEL": "loud", "BIDE_LOG_FORMAT": "xml", "BIDE_SHUTDOWN_TIMEOUT": "1h",
		"BIDE_EXECUTIONS": "many", "BIDE_MAX_ATTEMPTS": "0", "BIDE_RETENTION": "1h", "BIDE_MIGRATE": "later", "BIDE_SLAK": "1s",
	}
	environment(t, wrong)
	_, err := LoadConsumer()
	require.Len(t, faults(err), len(wrong), err)
	for name := range wrong {
		require.ErrorContains(t, err, name)
	}
	for name, value := range wrong {
		require.Equal(t, value, os.Getenv(name), "the environment is as it was")
	}
}

func TestAMisspeltVariableIsNoDefault(t *testing.T) {
	environment(t, with(map[string]string{"BIDE_RABBITMQ_PREFECH": canary, "BIDE_TEST_ANYTHING": "1", "BIDED": "1"}))
	_, err := LoadConsumer()
	require.EqualError(t, err, "BIDE_RABBITMQ_PREFECH: no such variable; see --help")
}

// One environment file serves all commands.
func TestTheOtherServicesVariablesAreNoFault(t *testing.T) {
	environment(t, with(map[string]string{"BIDE_EXECUTIONS": "8", "BIDE_POLL_INTERVAL": "50ms"}))
	_, err := LoadProducer()
	require.NoError(t, err)
	_, err = LoadConsumer()
	require.NoError(t, err)
	_, err = LoadDatabase()
	require.NoError(t, err)
}

// Each command reads only what it needs.
func TestCommandsDoWithLess(t *testing.T) {
	environment(t, map[string]string{"BIDE_RABBITMQ_TIERS": "1s 5m"})
	cfg, err := LoadLevels()
	require.NoError(t, err)
	require.Equal(t, "1s 5m", cfg.Tiers().String())
	_, err = LoadDatabase()
	require.ErrorContains(t, err, "BIDE_DATABASE_URL is not set")
}

// secrets are the variables that a file may hold, each with a value and how to
// read it back.
var secrets = map[string]struct {
	value string
	get   func(*Consumer) string
}{
	"BIDE_DATABASE_URL":            {database, func(c *Consumer) string { return c.DatabaseURL }},
	"BIDE_RABBITMQ_URL":            {rabbit, func(c *Consumer) string { return c.RabbitURL }},
	"BIDE_RABBITMQ_MANAGEMENT_URL": {"http://bide:secret@localhost:15672", func(c *Consumer) string { return c.RabbitManagement }},
	"BIDE_ROCKETMQ_SECRET_KEY":     {"secret", func(c *Consumer) string { return c.RocketSecretKey }},
}

func TestSecretsComeFromFiles(t *testing.T) {
	for name, secret := range secrets {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			require.NoError(t, os.WriteFile(file, []byte(secret.value+"\n"), 0o600))
			variables := with(nil)
			delete(variables, name)
			variables[name+"_FILE"] = file
			environment(t, variables)
			cfg, err := LoadConsumer()
			require.NoError(t, err)
			require.Equal(t, secret.value, secret.get(cfg), "without the line's end")

			t.Setenv(name, canary)
			_, err = LoadConsumer()
			require.EqualError(t, err, fmt.Sprintf("%s and %[1]s_FILE are both set: want one", name))

			t.Setenv(name, "")
			t.Setenv(name+"_FILE", filepath.Join(t.TempDir(), "missing"))
			_, err = LoadConsumer()
			require.ErrorContains(t, err, name+"_FILE: no such file")
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// A secret may be broken in any way, or be given where its file's name belongs:
// no error tells it.
func TestNoErrorTellsASecret(t *testing.T) {
	environment(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		junk := rapid.StringMatching(`[a-z0-9:/@?&=% #\[\]\\]{0,12}`)
		scheme := rapid.SampledFrom([]string{"", "postgres://", "postgres://bide:", "amqp://", "amqps://bide:", "http://a:", "host=x password="})
		variable := rapid.SampledFrom(slices.Sorted(maps.Keys(secrets))).Draw(rt, "variable") + rapid.SampledFrom([]string{"", "_FILE"}).Draw(rt, "file")
		value := scheme.Draw(rt, "scheme") + junk.Draw(rt, "before") + canary + junk.Draw(rt, "after")
		require.NoError(rt, os.Setenv(variable, value)) //nolint:usetesting // for this one check
		_, producer := LoadProducer()
		_, consumer := LoadConsumer()
		require.NoError(rt, os.Unsetenv(variable))
		err := errors.Join(producer, consumer)
		require.NotContains(rt, fmt.Sprintf("%v %+v %#v", err, err, err), canary)
	})
}
