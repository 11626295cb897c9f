package demo

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readyWithin bounds a service's start.
	readyWithin = 30 * time.Second
	// stopWithin bounds its end: the services' own limit, 10 s, and some.
	stopWithin = 12 * time.Second
	// tailLines is how much of a service's log is shown after a failure.
	tailLines = 15
)

// process is one service that runs.
type process struct {
	name   string
	log    string // path
	listen string
	cmd    *exec.Cmd
	// told is set before the process is asked to end, so that an end that
	// nobody asked for can be told apart.
	told  atomic.Bool
	ended chan struct{}
	err   error // of the end; read after ended is closed
}

// startProcess starts the executable with its output going to a file in dir.
// lost is called when it ends without having been told to.
func startProcess(path, name, dir string, env []string, lost func(error)) (*process, error) {
	listen, err := freeAddress()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	p := &process{name: name, log: log.Name(), listen: listen, cmd: exec.Command(path), ended: make(chan struct{})}
	p.cmd.Env = append(append([]string{}, env...), "BIDE_LISTEN="+listen)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = processAttributes()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		if !p.told.Load() {
			lost(fmt.Errorf("%s ended by itself: %v", name, p.cmd.ProcessState))
		}
		close(p.ended)
	}()
	return p, nil
}

// freeAddress returns a loopback address that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// ready waits until the service says that it is. ctx is expected to end when
// the service does.
func (p *process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		answer := p.probe(ctx)
		if answer == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%s): %w", p.name, answer, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// probe returns why the service is not ready, or nothing when it is.
func (p *process) probe(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.listen+"/readyz", http.NoBody)
	if err != nil {
		return err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	return ""
}

// kill ends the process without a chance to tidy up.
func (p *process) kill() error {
	p.told.Store(true)
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}

// stop asks the process to end, and sees to it. A service that has to be
// killed, or that reports an error on its way out, is an error.
func (p *process) stop(within time.Duration) error {
	p.told.Store(true)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return nil // it has ended already
	}
	select {
	case <-p.ended:
	case <-time.After(within):
		_ = p.kill()
		return fmt.Errorf("%s did not stop within %v", p.name, within)
	}
	if p.err != nil {
		return fmt.Errorf("stop %s: %w", p.name, p.err)
	}
	return nil
}

// tail returns the end of the process's log.
func (p *process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte{'\n'})
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte{'\n'}))
}
