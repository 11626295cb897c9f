package broker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/broker"
	"github.com/bide-mq/bide/internal/config"
)

// What only the driver knows to be wrong is found before anything is connected,
// each fault on a line that names the driver.
func TestFaultsAreFoundBeforeConnecting(t *testing.T) {
	for name, tt := range map[string]struct {
		env  map[string]string
		want string
	}{
		"sound": {map[string]string{
			"BIDE_RABBITMQ_URL": "amqp://bide:secret@localhost/",
		}, ""},
		"two of RabbitMQ's": {map[string]string{
			"BIDE_RABBITMQ_URL": "amqps://bide:s%zzcret@localhost/", "BIDE_RABBITMQ_CERT_FILE": "client.pem",
		}, "rabbitmq: url: not an AMQP URL, want amqp://user:password@host:port/vhost or amqps://… with reserved characters percent-encoded\n" +
			"rabbitmq: tls: a client certificate needs both its certificate file and its key file"},
		"RabbitMQ is not asked": {map[string]string{
			"BIDE_BROKER": "none", "BIDE_RABBITMQ_URL": "nonsense",
		}, ""},
		"RocketMQ": {map[string]string{
			"BIDE_BROKER": "rocketmq", "BIDE_ROCKETMQ_NAME_SERVERS": "somewhere",
		}, `rocketmq: name server "somewhere": want host:port, such as 10.0.0.7:9876`},
		"reported before": {map[string]string{
			"BIDE_RABBITMQ_URL": "nonsense", "BIDE_SLACK": "5s",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range tt.env {
				t.Setenv(variable, value)
			}
			cfg, _ := config.LoadBroker()
			err := broker.Validate(*cfg)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tt.want)
		})
	}
}
