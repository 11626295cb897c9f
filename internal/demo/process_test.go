package demo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startPart starts a producer that plays the part.
func startPart(t *testing.T, part string) *process {
	t.Helper()
	p, err := startProcess(filepath.Join(troupe(t), producer), "producer", t.TempDir(),
		[]string{partVariable + "=" + part}, func(err error) { t.Error(err) })
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.kill() }) // which most tests have stopped
	require.NoError(t, p.ready(t.Context()))
	return p
}

func TestStopLetsAServiceFinish(t *testing.T) {
	t.Parallel()
	p := startPart(t, sound)
	require.NoError(t, p.stop(stopWithin))
	require.True(t, p.cmd.ProcessState.Success())
	require.NoError(t, p.stop(stopWithin), "stopped again")
}

func TestStopEndsAServiceThatDoesNotListen(t *testing.T) {
	t.Parallel()
	p := startPart(t, stubborn)
	require.EqualError(t, p.stop(50*time.Millisecond), "producer did not stop within 50ms")
	require.NotNil(t, p.cmd.ProcessState, "still running")
}

func TestTailIsTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	p := &process{log: filepath.Join(t.TempDir(), "log")}
	require.NoError(t, os.WriteFile(p.log, []byte("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\na\nb\nc\nd\ne\nf\n"), 0o600))
	require.Equal(t, "1\n2\n3\n4\n5\n6\n7\n8\n9\na\nb\nc\nd\ne\nf", p.tail())
	require.NoError(t, os.WriteFile(p.log, []byte("only\n"), 0o600))
	require.Equal(t, "only", p.tail())
}
