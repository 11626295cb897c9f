package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/broker"
	"github.com/bide-mq/bide/internal/config"
	"github.com/bide-mq/bide/internal/pgtest"
	driver "github.com/bide-mq/bide/rabbit"
)

// canary is a password that is wrong, and must appear nowhere all the same.
const canary = "c4n4ry-p4ssw0rd"

const handlers = `
handlers:
  close_order:
    lock: shop.orders(id)
    sql: UPDATE shop.orders SET status = 'CLOSED' WHERE id = ANY($1) AND status = 'UNPAID' RETURNING id
`

// site is a shop with a ledger of its own, and the environment of its services.
type site struct {
	env     []string
	pool    *pgxpool.Pool
	secrets []string
}

// newSite migrates by the command. The settings replace those that suffice.
func newSite(t *testing.T, settings ...string) *site {
	t.Helper()
	database := pgtest.NewDatabase(t)
	file := filepath.Join(t.TempDir(), "handlers.yaml")
	require.NoError(t, os.WriteFile(file, []byte(handlers), 0o600))
	s := &site{
		env: append([]string{
			"BIDE_DATABASE_URL=" + database, "BIDE_HANDLERS_FILE=" + file, "BIDE_LISTEN=127.0.0.1:0",
			"BIDE_LOG_FORMAT=json", "BIDE_LOG_LEVEL=debug",
		}, settings...),
		secrets: []string{password(t, database), password(t, rabbitURL(t)), canary},
	}
	s.pool = openShop(t, database)
	migrated := (&site{env: []string{"BIDE_DATABASE_URL=" + database}}).run(t, "bide", "migrate")
	require.Zero(t, migrated.code, migrated.errs)
	require.Contains(t, migrated.out, "schema bide is at version ")
	t.Cleanup(func() { s.deleteQueues(t) })
	return s
}

// with is the site with other settings.
func (s *site) with(settings ...string) *site {
	other := *s
	other.env = slices.Concat(s.env, settings)
	return &other
}

// rabbit are the settings that lead to the test broker.
func rabbit(t *testing.T) []string {
	t.Helper()
	return []string{
		"BIDE_RABBITMQ_URL=" + rabbitURL(t), "BIDE_RABBITMQ_MANAGEMENT_URL=" + variable(t, "BIDE_TEST_RABBITMQ_MANAGEMENT_URL"),
		"BIDE_RABBITMQ_PREFIX=smoke", "BIDE_RABBITMQ_TIERS=1s",
	}
}

func rabbitURL(t *testing.T) string {
	t.Helper()
	return variable(t, "BIDE_TEST_RABBITMQ_URL")
}

// variable is one that the test environment provides.
func variable(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	require.NotEmpty(t, value, "%s is not set: run the tests with `make test`, which provides it", name)
	return value
}

// password is that of a test server, which is as good a canary as any.
func password(t *testing.T, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	secret, _ := u.User.Password()
	require.Greater(t, len(secret), 7, "too short to be told from other text")
	return secret
}

func withPassword(t *testing.T, rawURL, secret string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	u.User = url.UserPassword(u.User.Username(), secret)
	return u.String()
}

// requireSecrecy requires that a text tells no password.
func (s *site) requireSecrecy(t *testing.T, text string) {
	t.Helper()
	for _, secret := range s.secrets {
		require.NotContains(t, text, secret)
	}
}

// deleteQueues removes what the services have declared for the site's ledger.
func (s *site) deleteQueues(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	pool := pgtest.Pool(t, s.pool.Config().ConnString(), 1)
	cfg := config.Broker{RabbitURL: rabbitURL(t), RabbitPrefix: "smoke"}
	require.NoError(t, driver.DeleteQueues(ctx, broker.Rabbit(cfg, pgtest.Open(t, pool).ID())))
}

// binary is a program that `make build` has built.
func binary(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "bin", name))
	require.NoError(t, err)
	require.FileExists(t, path, "run the tests with `make test`, which builds the programs")
	return path
}

// command prepares a program with the site's environment and nothing else.
func (s *site) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(binary(t, name), args...)
	c.Env, c.Dir = s.env, t.TempDir()
	if c.Env == nil {
		c.Env = []string{"HOME=/"}
	}
	return c
}

// result is what a program came to.
type result struct {
	code      int
	out, errs string
}

// run runs a program to its end.
func (s *site) run(t *testing.T, name string, args ...string) result {
	t.Helper()
	c := s.command(t, name, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return result{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// service is a program that runs.
type service struct {
	name, listen string
	cmd          *exec.Cmd
	log          *logFile
	ended        chan struct{}
}

// start starts a service and waits until it listens.
func (s *site) start(t *testing.T, name string) *service {
	t.Helper()
	p := s.launch(t, name)
	require.Eventually(t, func() bool {
		p.listen = p.log.listen()
		return p.listen != ""
	}, 20*time.Second, 5*time.Millisecond, "%s does not start", name)
	return p
}

// launch starts a service that ends with the test.
func (s *site) launch(t *testing.T, name string) *service {
	t.Helper()
	p := &service{name: name, cmd: s.command(t, name), log: &logFile{}, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // code tells
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Log(p.log.String())
		}
	})
	return p
}

// stop ends a service by SIGTERM, within 10 s, and returns its exit code.
func (p *service) stop(t *testing.T) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		require.Fail(t, p.name+" does not stop")
	}
	return p.code()
}

func (p *service) code() int { return p.cmd.ProcessState.ExitCode() }

// logFile is what a service writes.
type logFile struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logFile) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// listen is the address that the service has said it listens on.
func (l *logFile) listen() string {
	for line := range strings.Lines(l.String()) {
		var entry struct{ Msg, Listen string }
		if json.Unmarshal([]byte(line), &entry) == nil && strings.HasSuffix(entry.Msg, " started") {
			return entry.Listen
		}
	}
	return ""
}

func specs() map[string]any {
	return map[string]any{"producer": config.Producer{}, "consumer": config.Consumer{}}
}

// variables lists the variables of a configuration.
func variables(spec any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(spec)) {
		if name, ok := f.Tag.Lookup("envconfig"); ok {
			names = append(names, name)
		}
	}
	return names
}
