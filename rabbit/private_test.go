package rabbit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bide-mq/bide/rabbit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(&suite{m}) }

// suite removes the private broker after the tests.
type suite struct{ tests *testing.M }

func (s *suite) Run() int {
	code := s.tests.Run()
	if private.name != "" {
		_, _ = services("remove", private.name)
	}
	http.DefaultClient.CloseIdleConnections()
	return code
}

// instance is a broker of the tests' own, to be broken at will. Tests that use
// it do not run in parallel.
type instance struct {
	once       sync.Once
	name       string
	err        error
	url        string
	management string
}

var private instance

// ownBroker starts the private broker the first time.
func ownBroker(t testing.TB) *instance {
	t.Helper()
	variable(t, "BIDE_TEST_SERVICES")
	private.once.Do(func() { private.err = private.start(fmt.Sprintf("rabbit-%d", os.Getpid())) })
	require.NoError(t, private.err)
	return &private
}

func (b *instance) start(name string, settings ...string) error {
	kind := os.Getenv("BIDE_TEST_RABBITMQ_KIND")
	if kind == "" {
		kind = "rabbitmq"
	}
	b.name = name
	out, err := services(append([]string{"start", kind, name}, settings...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "URL":
			b.url = value
		case "MANAGEMENT_URL":
			b.management = value
		}
	}
	return nil
}

// do runs a verb of dev/services on the broker, such as kill or ctl.
func (b *instance) do(t testing.TB, verb string, args ...string) string {
	t.Helper()
	out, err := services(append([]string{verb, b.name}, args...)...)
	require.NoError(t, err)
	return out
}

func (b *instance) config() rabbit.Config { return config(b.url) }

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

// api calls the management API of a broker.
func api(t testing.TB, management, method, path, body string) {
	t.Helper()
	base, err := url.Parse(management)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, "http://"+base.Host+"/api/"+path, strings.NewReader(body))
	require.NoError(t, err)
	password, _ := base.User.Password()
	request.SetBasicAuth(base.User.Username(), password)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Less(t, response.StatusCode, 300, "%s %s: %s", method, path, response.Status)
}
