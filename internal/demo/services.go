package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// The executables.
const (
	producer = "producer"
	consumer = "consumer"
)

//go:embed handlers.yaml
var handlersYAML []byte

// services starts and ends Bide's processes.
type services struct {
	binDir string
	dir    string // logs and the handlers' file
	env    []string
	// lost is called with the reason when a service ends by itself. Set it
	// before the first start.
	lost func(error)

	mu  sync.Mutex
	all []*process
}

// newServices prepares what the services need.
func newServices(cfg Config, databaseURL string) (*services, error) {
	dir, err := os.MkdirTemp("", "bide-demo-")
	if err != nil {
		return nil, err
	}
	handlers := filepath.Join(dir, "handlers.yaml")
	if err := os.WriteFile(handlers, handlersYAML, 0o600); err != nil {
		return nil, err
	}
	env := append(append([]string{}, cfg.Environment...),
		"BIDE_DATABASE_URL="+databaseURL, "BIDE_BROKER="+cfg.Broker, "BIDE_HANDLERS_FILE="+handlers)
	return &services{binDir: cfg.BinDir, dir: dir, env: env}, nil
}

// start returns once the service is ready. name tells several of a kind apart.
func (s *services) start(ctx context.Context, kind, name string) error {
	p, err := startProcess(filepath.Join(s.binDir, kind), name, s.dir, s.env, s.lost)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.all = append(s.all, p)
	s.mu.Unlock()
	return p.ready(ctx)
}

// kill ends the named service with SIGKILL.
func (s *services) kill(name string) error {
	for _, p := range s.running() {
		if p.name == name {
			return p.kill()
		}
	}
	return fmt.Errorf("kill %s: no such service", name)
}

func (s *services) running() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*process{}, s.all...)
}

// stop ends all services at once and waits for them. It may be called again.
func (s *services) stop() error {
	all := s.running()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { errs[i] = p.stop(stopWithin) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// explain writes the end of each log and says where the whole of it is.
func (s *services) explain(out io.Writer) {
	for _, p := range s.running() {
		_, _ = fmt.Fprintf(out, "--- the end of %s ---\n%s\n", p.log, p.tail())
	}
}

// tidy removes the logs.
func (s *services) tidy() error { return os.RemoveAll(s.dir) }
