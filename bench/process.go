package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one of Bide's services.
type process struct {
	name     string
	cmd      *exec.Cmd
	log      string
	listen   string
	sampling sync.WaitGroup
	over     chan struct{}

	mu   sync.Mutex
	peak float64 // MiB resident
}

// launch starts a service and waits until it is ready.
func launch(ctx context.Context, bin, name, dir string, env []string) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	listen := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	p := &process{name: name, listen: listen, log: filepath.Join(dir, fmt.Sprintf("%s-%s.log", name, listen)), over: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	p.cmd = exec.Command(filepath.Join(bin, name))
	p.cmd.Env = append(append(os.Environ(), "BIDE_LISTEN="+listen), env...)
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.sampling.Go(p.sample)
	err = poll(ctx, 30*time.Second, name+" to be ready", func() (bool, error) {
		resp, err := http.Get("http://" + listen + "/readyz")
		if err != nil {
			return false, nil
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
	if err != nil {
		text, _ := os.ReadFile(p.log)
		p.stop()
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return p, nil
}

// sample keeps the peak of resident memory.
func (p *process) sample() {
	for {
		now := p.resident()
		p.mu.Lock()
		p.peak = max(p.peak, now)
		p.mu.Unlock()
		select {
		case <-p.over:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// most is the peak of resident memory so far, in MiB.
func (p *process) most() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// resident is the memory in MiB.
func (p *process) resident() float64 {
	kib, _ := strconv.ParseFloat(strings.Fields(field(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid), "VmRSS") + " ")[0], 64)
	return kib / 1024
}

// cpu is the processor time used so far. The kernel counts hundredths.
func (p *process) cpu() time.Duration {
	text := firstLine(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(text, ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (p *process) stop() {
	close(p.over)
	p.sampling.Wait()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}
