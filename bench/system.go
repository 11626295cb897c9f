package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bide-mq/bide/outbox"
)

// handlers is the lightest honest effect: one row updated, stamped at the end.
const handlers = `handlers:
  measure:
    lock: bench.effect(id)
    sql: UPDATE bench.effect SET at = clock_timestamp() WHERE id = ANY($1) AND at IS NULL RETURNING id
`

const schema = `CREATE SCHEMA bench;
CREATE TABLE bench.effect (id bigint PRIMARY KEY, fire_at timestamptz NOT NULL, at timestamptz) WITH (fillfactor = 50);`

// system is the services under measurement and their database.
type system struct {
	o        options
	admin    string // the server's own URL
	database string
	db       *pgxpool.Pool
	dir      string
	procs    []*process
	sampling sync.WaitGroup
	stopped  chan struct{}
}

// process is one service.
type process struct {
	name   string
	cmd    *exec.Cmd
	listen string
	peak   int64 // KiB resident
}

func start(ctx context.Context, o options) (*system, error) {
	s := &system{o: o, admin: os.Getenv("BIDE_DATABASE_URL"), database: "bide_bench", stopped: make(chan struct{})}
	if s.admin == "" {
		return nil, errors.New("BIDE_DATABASE_URL is not set")
	}
	if err := s.prepare(ctx); err != nil {
		s.stop()
		return nil, err
	}
	names := []string{"producer"}
	for range o.consumers {
		names = append(names, "consumer")
	}
	for _, name := range names {
		if err := s.launch(ctx, name); err != nil {
			s.stop()
			return nil, err
		}
	}
	s.sampling.Go(s.sample)
	return s, nil
}

// prepare makes the database, the ledger and the table of effects.
func (s *system) prepare(ctx context.Context) error {
	if err := s.execute(ctx, "DROP DATABASE IF EXISTS "+s.database+" WITH (FORCE)", "CREATE DATABASE "+s.database); err != nil {
		return err
	}
	cfg, err := outbox.PoolConfig(s.url(), 8)
	if err != nil {
		return err
	}
	if s.db, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	err = s.db.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		_, err := outbox.Migrate(ctx, c.Conn(), outbox.DefaultSchema)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := s.db.Exec(ctx, schema); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "bide-bench-"); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "handlers.yaml"), []byte(handlers), 0o600)
}

func (s *system) url() string {
	u, _ := url.Parse(s.admin) // connected to before
	u.Path = "/" + s.database
	return u.String()
}

func (s *system) execute(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to lose
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// launch starts a service and waits until it is ready.
func (s *system) launch(ctx context.Context, name string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p := &process{name: name, listen: l.Addr().String()}
	if err := l.Close(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, fmt.Sprintf("%s-%d.log", name, len(s.procs))))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	p.cmd = exec.Command(filepath.Join(s.o.bin, name))
	p.cmd.Env = append(os.Environ(), "BIDE_DATABASE_URL="+s.url(), "BIDE_LISTEN="+p.listen, "BIDE_BROKER="+s.o.broker,
		"BIDE_RABBITMQ_QUEUE_TYPE="+s.o.queueType, "BIDE_ROCKETMQ_MODE="+s.o.mode, "BIDE_HANDLERS_FILE="+filepath.Join(s.dir, "handlers.yaml"), "BIDE_RABBITMQ_CONSUMERS=6")
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	s.procs = append(s.procs, p)
	return poll(ctx, 30*time.Second, name+" to be ready", func() (bool, error) {
		resp, err := http.Get("http://" + p.listen + "/readyz")
		if err != nil {
			return false, nil
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
}

// poll asks until the answer is yes.
func poll(ctx context.Context, most time.Duration, what string, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		if ok, err := ask(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sample keeps each service's peak of resident memory.
func (s *system) sample() {
	for {
		for _, p := range s.procs {
			p.peak = max(p.peak, resident(p.cmd.Process.Pid))
		}
		select {
		case <-s.stopped:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// resident is a process's resident memory in KiB, from /proc.
func resident(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib
		}
	}
	return 0
}

// stop ends the services and drops the database.
func (s *system) stop() {
	close(s.stopped)
	s.sampling.Wait()
	for _, p := range s.procs {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range s.procs {
		_ = p.cmd.Wait()
	}
	if s.db != nil {
		s.db.Close()
	}
	_ = s.execute(context.Background(), "DROP DATABASE IF EXISTS "+s.database+" WITH (FORCE)")
	_ = os.RemoveAll(s.dir)
}
