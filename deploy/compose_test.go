// Package deploy holds what the containers mount. Its test reads
// docker-compose.yml as Docker Compose would.
package deploy

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/pgtest"
)

func load(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"}, cli.WithDiscardEnvFile, cli.WithProfiles(profiles))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func TestStartsInOrder(t *testing.T) {
	t.Parallel()
	project := load(t)
	require.ElementsMatch(t, []string{"postgres", "rabbitmq", "migrate", "producer", "consumer"}, project.ServiceNames())

	conditions := func(service string) map[string]string {
		got := map[string]string{}
		for name, dependency := range project.Services[service].DependsOn {
			require.True(t, dependency.Required)
			got[name] = dependency.Condition
		}
		return got
	}
	require.Equal(t, map[string]string{"postgres": types.ServiceConditionHealthy}, conditions("migrate"))
	for _, service := range []string{"producer", "consumer"} {
		require.Equal(t, map[string]string{
			"migrate":  types.ServiceConditionCompletedSuccessfully,
			"rabbitmq": types.ServiceConditionHealthy,
		}, conditions(service), service)
	}
}

// RocketMQ stands beside, for those who ask for it.
func TestRocketMQIsAProfile(t *testing.T) {
	t.Parallel()
	project := load(t, "rocketmq")
	broker := project.Services["rocketmq-broker"]
	require.Equal(t, types.ServiceConditionHealthy, broker.DependsOn["rocketmq-namesrv"].Condition)
	require.Contains(t, project.Services, "rabbitmq")
	settings, err := os.ReadFile("rocketmq/broker.conf")
	require.NoError(t, err)
	for _, setting := range []string{"brokerIP1 = rocketmq-broker", "flushDiskType = SYNC_FLUSH", "timerEnableRetryUntilSuccess = true"} {
		require.Contains(t, string(settings), setting)
	}
}

func TestEveryServerHasAHealthCheck(t *testing.T) {
	t.Parallel()
	for name, service := range load(t, "rocketmq").Services {
		if name == "migrate" {
			continue // runs to its end
		}
		require.NotNil(t, service.HealthCheck, name)
		require.Equal(t, "CMD", service.HealthCheck.Test[0], "%s: the image may have no shell", name)
		require.NotNil(t, service.HealthCheck.Interval, name)
	}
}

func TestNothingIsReachableFromOutside(t *testing.T) {
	t.Parallel()
	for name, service := range load(t).Services {
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s publishes %s", name, port.Published)
		}
		require.False(t, service.Privileged, name)
	}
}

// Two consumers show that work is shared, and need a host port each.
func TestTwoConsumers(t *testing.T) {
	t.Parallel()
	consumer := load(t).Services["consumer"]
	require.Equal(t, 2, consumer.GetScale())
	require.Len(t, consumer.Ports, 1)
	require.Equal(t, "9465-9466", consumer.Ports[0].Published)
}

func TestBideRunsConfined(t *testing.T) {
	t.Parallel()
	project := load(t)
	for _, name := range []string{"migrate", "producer", "consumer"} {
		service := project.Services[name]
		require.True(t, service.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, service.CapDrop, name)
		require.Greater(t, time.Duration(*service.StopGracePeriod), 10*time.Second,
			"%s: killed before its own shutdown time-out", name)
		for _, variable := range []string{"BIDE_DATABASE_URL", "BIDE_RABBITMQ_URL"} {
			require.Contains(t, service.Environment, variable, name)
		}
	}
}

// The services refuse a variable that they do not know, and a value that they
// cannot use.
func TestEnvironmentIsAccepted(t *testing.T) {
	project := load(t)
	for name, check := range map[string]func() error{
		"migrate":  func() error { _, err := config.LoadProducer(); return err },
		"producer": func() error { _, err := config.LoadProducer(); return err },
		"consumer": func() error { _, err := config.LoadConsumer(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range project.Services[name].Environment {
				t.Setenv(variable, *value)
			}
			require.NoError(t, check())
		})
	}
}

func TestMountedFilesExist(t *testing.T) {
	t.Parallel()
	for name, service := range load(t, "rocketmq").Services {
		for _, volume := range service.Volumes {
			if volume.Type != types.VolumeTypeBind {
				continue
			}
			require.FileExists(t, volume.Source, name)
			require.True(t, volume.ReadOnly, "%s may write %s", name, volume.Source)
		}
	}
}

func TestBrokerHasTheDeadLetterSettings(t *testing.T) {
	t.Parallel()
	mounted := slices.ContainsFunc(load(t).Services["rabbitmq"].Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Target == "/etc/rabbitmq/advanced.config"
	})
	require.True(t, mounted)
	settings, err := os.ReadFile("rabbitmq/advanced.config")
	require.NoError(t, err)
	require.Contains(t, string(settings), "{dead_letter_worker_consumer_prefetch, 512}")
	require.Contains(t, string(settings), "{dead_letter_worker_publisher_confirm_timeout, 5000}")
}

// The consumers start only if the handlers file fits the tables.
func TestHandlersFitTheShop(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("handlers.yaml")
	require.NoError(t, err)
	shop, err := os.ReadFile("postgres/shop.sql")
	require.NoError(t, err)

	set, err := handler.Parse("handlers.yaml", text)
	require.NoError(t, err)
	db := pgtest.New(t)
	_, err = db.Exec(t.Context(), string(shop))
	require.NoError(t, err)
	require.NoError(t, set.Prepare(t.Context(), db))
}

// dev/services falls back on this file where it cannot install packages.
func TestStandInForPackagesLoads(t *testing.T) {
	t.Parallel()
	env := []string{
		"NAME=x", "DIR=/tmp/x", "BASE=20000", "PASSWORD=x",
		"DIST_PORT=20002", "EPMD_PORT=20003", "RABBITMQ_IMAGE=rabbitmq:4-management",
	}
	options, err := cli.NewProjectOptions([]string{"../dev/compose.yml"}, cli.WithDiscardEnvFile, cli.WithEnv(env))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"postgres", "pgbouncer", "rabbitmq", "redis"}, project.ServiceNames())
	for name, service := range project.Services {
		require.Equal(t, "host", service.NetworkMode, name)
		require.NotNil(t, service.HealthCheck, name)
	}
}
