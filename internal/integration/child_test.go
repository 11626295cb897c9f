package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childVariable holds a child's orders.
const childVariable = "BIDE_INTEGRATION_CHILD"

// orders tell a child process what to be.
type orders struct {
	Site site
	// Relay or else a worker.
	Relay bool
	// Failpoint is where the process kills itself; see failpoints.
	Failpoint failpoint
	// Lease is a relay's; 0 for the default.
	Lease time.Duration
}

// runChild is the main function of a child. It works until its standard input
// ends, so that none outlives the test.
func runChild(text string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends one way or the other
		cancel()
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := obey(ctx, text, log); err != nil {
		log.Error("child", "err", err)
		return 1
	}
	return 0
}

func obey(ctx context.Context, text string, log *slog.Logger) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	if o.Relay {
		spec := o.Failpoint.relay()
		spec.Lease = o.Lease
		p, err := o.Site.newProducer(ctx, spec, newTally(), log)
		if err != nil {
			return err
		}
		return p.run(ctx)
	}
	c, err := o.Site.newConsumer(ctx, o.Failpoint.worker(), newTally(), log)
	if err != nil {
		return err
	}
	return c.run(ctx)
}

// die ends the process as nothing can prevent.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// child is a service in a process of its own.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	// ended is closed when the process has ended; err, set before, says how.
	ended chan struct{}
	err   error
}

// spawn starts a child that ends with the test.
func (s *system) spawn(t testing.TB, o orders) *child {
	t.Helper()
	c, err := s.launch(o)
	require.NoError(t, err)
	t.Cleanup(c.kill)
	return c
}

func (s *system) launch(o orders) (*child, error) {
	o.Site = s.site
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	c.cmd.Stderr = lines{s.log}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.ended)
		c.err = c.cmd.Wait()
	}()
	return c, nil
}

// kill ends the child by SIGKILL, unless it has ended.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// lines passes a child's log on.
type lines struct{ log *slog.Logger }

func (l lines) Write(b []byte) (int, error) {
	l.log.Info("child", "log", strings.TrimSpace(string(b)))
	return len(b), nil
}

// awaitDeath waits until the child has killed itself.
func (c *child) awaitDeath(t testing.TB, within time.Duration) {
	t.Helper()
	select {
	case <-c.ended:
		require.True(t, killed(c.err), "the child ended otherwise: %v", c.err)
	case <-time.After(within):
		require.Fail(t, "the failpoint was not hit")
	}
}

// killed reports whether a process ended by SIGKILL.
func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// keepAlive runs children one after the other, as a supervisor does, until the
// test ends, and counts those that were killed.
func (s *system) keepAlive(t testing.TB, o orders) (deaths *atomic.Int32) {
	t.Helper()
	deaths = &atomic.Int32{}
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for s.outlive(o, stop, deaths) {
		}
	}()
	t.Cleanup(func() { close(stop); <-over })
	return deaths
}

// outlive runs one child and reports whether there is to be another.
func (s *system) outlive(o orders, stop <-chan struct{}, deaths *atomic.Int32) bool {
	c, err := s.launch(o)
	if err != nil {
		s.log.Error("launch a child", "err", err)
		return false
	}
	select {
	case <-c.ended:
		if killed(c.err) {
			deaths.Add(1)
			return true
		}
		s.log.Error("a child ended by itself", "err", c.err)
		return false
	case <-stop:
		_ = c.stdin.Close()
		<-c.ended
		return false
	}
}
