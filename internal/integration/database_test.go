package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPostgreSQLRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stop", "kill"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			database := startServer(t, "postgres")
			s := connect(t, newShopOn(t, database.url, patient), variable(t, "BIDE_TEST_RABBITMQ_URL"))
			s.startRelay(t, relaySpec{})
			s.startWorker(t, workerSpec{})
			s.startWorker(t, workerSpec{})
			s.underLoad(t, 2, 5*time.Second, func() {
				for range 2 {
					await(t.Context(), 3*time.Second)
					database.do(t, how)
					database.do(t, "restart")
				}
				await(t.Context(), 3*time.Second)
			})
			s.awaitDone(t, 40*time.Second)
			v := s.requireKept(t, 10*time.Second)
			require.Greater(t, v.Closed, 50)
		})
	}
}
