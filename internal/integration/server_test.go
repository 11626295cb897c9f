package integration

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// server is a throw-away instance, to be broken at will.
type server struct {
	name string
	// url is the name server's address for RocketMQ.
	url string
}

// startServer starts an instance of the kind, such as postgres or rocketmq5,
// that is removed when the test ends.
func startServer(t testing.TB, kind string, settings ...string) *server {
	t.Helper()
	s := &server{name: fmt.Sprintf("it-%s-%d", strings.ToLower(rand.Text()[:6]), os.Getpid())}
	t.Cleanup(func() { _, _ = services("remove", s.name) }) // also one that did not come up
	variable(t, "BIDE_TEST_SERVICES")
	out, err := services(append([]string{"start", kind, s.name}, settings...)...)
	require.NoError(t, err)
	for line := range strings.Lines(out) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key == "URL" || key == "NAMESRV" {
			s.url = value
		}
	}
	return s
}

// do runs a verb of dev/services on the server, such as stop, kill or restart.
func (s *server) do(t testing.TB, verb string) {
	t.Helper()
	_, err := services(verb, s.name)
	require.NoError(t, err)
}

func services(args ...string) (string, error) {
	cmd := exec.Command(os.Getenv("BIDE_TEST_SERVICES"), args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("dev/services %s: %w: %s", strings.Join(args, " "), err, complaint.String())
	}
	return string(out), nil
}
