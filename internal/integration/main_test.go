package integration

import (
	"flag"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rocket"
)

// atOnce is how many tests run beside each other: they wait more than they
// compute.
const atOnce = 6

// TestMain runs the tests, or a service in a process of its own.
func TestMain(m *testing.M) {
	rocket.UseLogger(slog.New(slog.DiscardHandler))
	if order := os.Getenv(childVariable); order != "" {
		os.Exit(runChild(order))
	}
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", strconv.Itoa(atOnce)) // a number always parses
	}
	goleak.VerifyTestMain(&suite{m}, brokertest.RocketMQLeaks()...)
}

// suite closes what the tests leave to the end.
type suite struct{ tests *testing.M }

func (s *suite) Run() int {
	code := s.tests.Run()
	http.DefaultClient.CloseIdleConnections()
	return code
}

// variable is one that the test environment provides.
func variable(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	require.NotEmpty(t, value, "%s is not set: run the tests with `make test`, which provides it", name)
	return value
}

// random returns a source of chance. Its seed is logged; BIDE_TEST_SEED repeats
// a run's choices.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("BIDE_TEST_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("BIDE_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
