package demo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// smallConfig is a run of a few seconds with services that play the part.
func smallConfig(t *testing.T, part string) Config {
	t.Helper()
	return Config{
		DatabaseURL: serverURL(t), Database: namesake(t),
		BinDir: troupe(t), Environment: []string{partVariable + "=" + part},
		Migrate: migrate,
		Orders:  200, Duration: 1500 * time.Millisecond,
		MinDelay: 300 * time.Millisecond, MaxDelay: time.Second,
		Grace: 10 * time.Second,
	}
}

var auditLine = regexp.MustCompile(`^audit: placed=200 paid=\d+ closed=\d+ lost=0 early=0 double=0 stock_drift=0 rescued=\d+ p50_ms=\d+ p99_ms=\d+ max_ms=\d+$`)

func TestRunFindsNoFaultWhereThereIsNone(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	got, err := Run(t.Context(), smallConfig(t, sound), &out)
	require.NoError(t, err, out.String())

	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Regexp(t, auditLine, lines[len(lines)-1])
	require.Equal(t, got.String(), lines[len(lines)-1])
	require.Contains(t, out.String(), "killed consumer-2 with SIGKILL")
	require.Contains(t, out.String(), "consumer-3 took its place")
	require.Positive(t, got.Paid)
	require.Less(t, got.Paid, 200/3+25)
	require.Equal(t, got.Closed, got.Rescued)
	require.Positive(t, got.P50)
	require.GreaterOrEqual(t, got.P99, got.P50)
	require.GreaterOrEqual(t, got.Max, got.P99)
}

// An audit that cannot fail proves nothing.
func TestRunFindsTheFault(t *testing.T) {
	tests := []struct {
		part string
		want string
	}{
		{hasty, "closed before their deadline"},
		{careless, "both paid and closed"},
		{forgetful, "were never closed"},
		{generous, "the stock is off by"},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			cfg := smallConfig(t, tt.part)
			cfg.Grace = time.Second
			got, err := Run(t.Context(), cfg, &out)
			require.ErrorContains(t, err, tt.want, "%s", out.String())
			require.True(t, strings.HasSuffix(out.String(), "\n"+got.String()+"\n"), "the audit's line comes last, after the logs: %s", out.String())
			require.Contains(t, out.String(), "playing "+tt.part)
		})
	}
}

func TestRunReportsAServiceThatFails(t *testing.T) {
	tests := []struct {
		part string
		want string
	}{
		{stillborn, "ended by itself: exit status 3"},
		{failing, "ended by itself: exit status 4"},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			_, err := Run(t.Context(), smallConfig(t, tt.part), &out)
			require.ErrorContains(t, err, tt.want, "%s", out.String())
			require.Contains(t, out.String(), "playing "+tt.part)
			require.NotContains(t, out.String(), "audit:")
		})
	}
}

func TestRunStopsWhenInterrupted(t *testing.T) {
	t.Parallel()
	cfg := smallConfig(t, sound)
	ctx, cancel := context.WithCancel(t.Context())
	ready := regexp.MustCompile(`placing 200 orders`)
	out := &watchedBuffer{seen: func(b []byte) {
		if ready.Match(b) {
			cancel()
		}
	}}
	began := time.Now()
	_, err := Run(ctx, cfg, out)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(began), stopWithin)
	require.NotContains(t, out.String(), "audit:")
	require.Empty(t, processesIn(t, cfg.BinDir))
}

// The broker's faults are injected by the caller: a purge is asked for until a
// queue qualifies, and what was declared is removed at the end.
func TestRunAsksForLostMessages(t *testing.T) {
	t.Parallel()
	cfg := smallConfig(t, sound)
	cfg.Broker = "rabbitmq"
	var ledgers []bide.LedgerID
	cfg.Purge = func(_ context.Context, ledger bide.LedgerID, least, most int) (int, error) {
		require.Equal(t, []int{1, 10}, []int{least, most})
		ledgers = append(ledgers, ledger)
		return map[int]int{1: 0, 2: 0, 3: 7}[len(ledgers)], nil
	}
	cleaned := 0
	cfg.Clean = func(_ context.Context, ledger bide.LedgerID) error {
		require.Equal(t, ledgers[0], ledger)
		require.Empty(t, processesIn(t, cfg.BinDir), "cleaned up before the services had stopped")
		cleaned++
		return nil
	}
	var out bytes.Buffer
	_, err := Run(t.Context(), cfg, &out)
	require.ErrorContains(t, err, "more than a tenth did not come through the broker")
	require.Contains(t, out.String(), "7 messages are lost for good")
	require.Len(t, ledgers, 3)
	require.NotZero(t, ledgers[0])
	require.Equal(t, 1, cleaned)
}

func TestRunFailsWhenNothingCanBeLost(t *testing.T) {
	t.Parallel()
	cfg := smallConfig(t, sound)
	cfg.Broker = "rabbitmq"
	cfg.Purge = func(context.Context, bide.LedgerID, int, int) (int, error) { return 0, nil }
	var out bytes.Buffer
	_, err := Run(t.Context(), cfg, &out)
	require.ErrorContains(t, err, "purge a queue: none held between 1 and 10 messages")
}

// watchedBuffer shows what has been written so far to seen.
type watchedBuffer struct {
	bytes.Buffer
	seen func([]byte)
}

func (w *watchedBuffer) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	w.seen(w.Bytes())
	return n, err
}

// processesIn returns the ids of the processes that were started from dir.
func processesIn(t *testing.T, dir string) []int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var ids []int
	for _, file := range lines {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), dir) {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		require.NoError(t, err)
		ids = append(ids, id)
	}
	return ids
}
