package rocket_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// suite removes the private brokers after the tests.
type suite struct{ tests *testing.M }

func (s *suite) Run() int {
	code := s.tests.Run()
	made.remove()
	return code
}

// made are the brokers of the tests' own.
var made instances

type instances struct {
	mu    sync.Mutex
	names []string
}

func (i *instances) remove() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range i.names {
		_, _ = services("remove", name)
	}
}

// own is a broker of a test's own, to be broken at will.
type own struct {
	installation
	name, data string
}

// newOwn starts a broker of the line with more settings, until t ends.
func newOwn(t testing.TB, line string, settings ...string) *own {
	t.Helper()
	variable(t, "BIDE_TEST_SERVICES")
	made.mu.Lock()
	name := fmt.Sprintf("rocket-%d-%d", os.Getpid(), len(made.names))
	made.names = append(made.names, name)
	made.mu.Unlock()
	t.Cleanup(func() { _, _ = services("remove", name) })
	out, err := services(append([]string{"start", "rocketmq" + line, name}, settings...)...)
	require.NoError(t, err)
	o := &own{name: name}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "NAMESRV":
			o.nameServer = value
		case "BROKER":
			o.broker = value
		case "DATA":
			o.data = value
		}
	}
	return o
}

// do runs a verb of dev/services on the broker, such as kill or ctl.
func (o *own) do(t testing.TB, verb string, args ...string) string {
	t.Helper()
	out, err := services(append([]string{verb, o.name}, args...)...)
	require.NoError(t, err)
	return out
}

func services(args ...string) (string, error) {
	cmd := exec.Command(os.Getenv("BIDE_TEST_SERVICES"), args...)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("dev/services %s: %w: %s", strings.Join(args, " "), err, errors.String())
	}
	return string(out), nil
}

func requireFault(t *testing.T, err error, subject, problem, remedy string) {
	t.Helper()
	require.Error(t, err)
	fault := new(bide.Fault)
	require.ErrorAs(t, err, &fault)
	require.Equal(t, bide.SeverityError, fault.Severity)
	require.Contains(t, fault.Subject, subject)
	require.Contains(t, fault.Problem, problem)
	require.Contains(t, fault.Remedy, remedy)
	require.ErrorContains(t, err, subject)
	require.ErrorContains(t, err, remedy)
}
