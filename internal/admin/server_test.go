package admin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bide-mq/bide/internal/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(&suite{m}) }

// suite closes what the tests leave to the end.
type suite struct{ tests *testing.M }

func (s *suite) Run() int {
	defer http.DefaultClient.CloseIdleConnections()
	return s.tests.Run()
}

func ready(context.Context) error { return nil }

// serve runs a server on a free port until the test ends, and returns its
// address.
func serve(t *testing.T, ready func(context.Context) error) string {
	t.Helper()
	listener, err := admin.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	s := &admin.Server{Listener: listener, Registry: admin.NewRegistry(), Ready: ready}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return listener.Addr().String()
}

// ask returns what the server answers.
func ask(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func TestAliveWhateverIsNotReady(t *testing.T) {
	t.Parallel()
	address := "http://" + serve(t, func(context.Context) error { return errors.New("the ledger does not answer") })
	status, body := ask(t, http.MethodGet, address+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ok\n", body)
	status, body = ask(t, http.MethodGet, address+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "the ledger does not answer\n", body)
}

func TestReadyWhenItIs(t *testing.T) {
	t.Parallel()
	status, body := ask(t, http.MethodGet, "http://"+serve(t, ready)+"/readyz")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ready\n", body)
}

// A check that hangs is an answer, too, and soon.
func TestReadinessIsBounded(t *testing.T) {
	t.Parallel()
	address := serve(t, func(ctx context.Context) error { <-ctx.Done(); return errors.New("timed out") })
	begun := time.Now()
	status, _ := ask(t, http.MethodGet, "http://"+address+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Less(t, time.Since(begun), 5*time.Second)
}

func TestThereIsNothingElse(t *testing.T) {
	t.Parallel()
	address := "http://" + serve(t, ready)
	for path, want := range map[string]int{"/": http.StatusNotFound, "/debug/pprof/": http.StatusNotFound, "/healthz/x": http.StatusNotFound, "/metrics": http.StatusOK} {
		status, _ := ask(t, http.MethodGet, address+path)
		require.Equal(t, want, status, path)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		status, _ := ask(t, http.MethodPost, address+path)
		require.Equal(t, http.StatusMethodNotAllowed, status, path)
	}
}

func TestRunEndsAtOnceWithTheContext(t *testing.T) {
	t.Parallel()
	listener, err := admin.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, (&admin.Server{Listener: listener, Registry: admin.NewRegistry(), Ready: ready}).Run(ctx))
	_, err = listener.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestAnAddressInUseIsAnError(t *testing.T) {
	t.Parallel()
	_, err := admin.Listen(t.Context(), serve(t, ready))
	require.ErrorContains(t, err, "listen: ")
	require.ErrorContains(t, err, "address already in use")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	address := serve(t, ready)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	for _, alive := range []string{address, ":" + port, "0.0.0.0:" + port, "[::]:" + port, "localhost:" + port} {
		require.NoError(t, admin.Check(t.Context(), alive), alive)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	require.ErrorContains(t, admin.Check(t.Context(), other.Listener.Addr().String()), "answered 404")
	require.ErrorContains(t, admin.Check(t.Context(), "127.0.0.1:1"), "connection refused")
	require.ErrorContains(t, admin.Check(t.Context(), "9464"), `address "9464"`)
}

// What accepts and says nothing is not alive.
func TestCheckIsBounded(t *testing.T) {
	t.Parallel()
	mute, err := admin.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = mute.Close() })
	begun := time.Now()
	require.ErrorIs(t, admin.Check(t.Context(), mute.Addr().String()), context.DeadlineExceeded)
	require.Less(t, time.Since(begun), 5*time.Second)
}
