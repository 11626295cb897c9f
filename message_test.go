package bide_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide"
)

const ledgerText = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"

func ledgerID(t testing.TB) bide.LedgerID {
	t.Helper()
	id, err := bide.ParseLedgerID(ledgerText)
	require.NoError(t, err)
	return id
}

func TestBodyIsOneReadableLine(t *testing.T) {
	t.Parallel()
	m := bide.Message{
		Ledger: ledgerID(t), TaskID: 42,
		RunAt: time.UnixMicro(1_700_000_000_000_001), DeliverAt: time.UnixMicro(1_699_999_999_900_000),
	}
	require.Equal(t, "bide1 "+ledgerText+" 42 1700000000000001 1699999999900000", string(m.Body()))
	require.Equal(t, "42-1700000000000001", m.ID())
	require.False(t, m.Probe())
	require.True(t, bide.Message{}.Probe())
}

func TestTheLongestBodyFits(t *testing.T) {
	t.Parallel()
	latest := time.UnixMicro(math.MaxInt64)
	m := bide.Message{Ledger: ledgerID(t), TaskID: math.MaxInt64, RunAt: latest, DeliverAt: latest}
	require.Len(t, m.Body(), 102)
	got, err := bide.ParseMessage(m.Body())
	require.NoError(t, err)
	require.Equal(t, m, got)
}

func TestEveryMessageComesBackAsItWas(t *testing.T) {
	t.Parallel()
	micros := rapid.Map(rapid.Int64Min(0), time.UnixMicro)
	rapid.Check(t, func(t *rapid.T) {
		m := bide.Message{
			Ledger: bide.LedgerID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "ledger")),
			TaskID: rapid.Int64Min(0).Draw(t, "task"),
			RunAt:  micros.Draw(t, "run at"), DeliverAt: micros.Draw(t, "deliver at"),
		}
		got, err := bide.ParseMessage(m.Body())
		require.NoError(t, err)
		require.Equal(t, m, got)
		require.Equal(t, m.ID(), got.ID())
	})
}

func TestOtherBodiesAreRefused(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty":                 "",
		"another version":       "bide2 " + ledgerText + " 1 2 3",
		"a field too few":       "bide1 " + ledgerText + " 1 2",
		"a field too many":      "bide1 " + ledgerText + " 1 2 3 4",
		"a trailing newline":    "bide1 " + ledgerText + " 1 2 3\n",
		"two spaces":            "bide1 " + ledgerText + "  1 2 3",
		"a ledger in capitals":  "bide1 " + strings.ToUpper(ledgerText) + " 1 2 3",
		"a ledger cut short":    "bide1 " + ledgerText[:35] + " 1 2 3",
		"no hexadecimal ledger": "bide1 " + ledgerText[:35] + "g 1 2 3",
		"a negative task":       "bide1 " + ledgerText + " -1 2 3",
		"a plus sign":           "bide1 " + ledgerText + " +1 2 3",
		"a leading zero":        "bide1 " + ledgerText + " 01 2 3",
		"beyond 64 bits":        "bide1 " + ledgerText + " 1 9223372036854775808 3",
		"no number":             "bide1 " + ledgerText + " 1 2 soon",
		"too long":              "bide1 " + ledgerText + " 1 2 " + strings.Repeat("3", 128),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := bide.ParseMessage([]byte(body))
			require.ErrorIs(t, err, bide.ErrMessage)
			require.Zero(t, got)
		})
	}
}

// Anybody may publish anything, and the error ends up in a log.
func TestABadBodyIsNotQuoted(t *testing.T) {
	t.Parallel()
	const secret = "c4n4ry"
	for _, body := range []string{
		secret, "bide1 " + secret + ledgerText[6:] + " 1 2 3", "bide1 " + ledgerText + " " + secret + " 2 3",
		"bide1 " + ledgerText + " 1 2 " + secret, strings.Repeat(secret, 100),
	} {
		_, err := bide.ParseMessage([]byte(body))
		require.Error(t, err)
		require.NotContains(t, err.Error(), secret)
	}
}

// FuzzParseMessage holds that a message has exactly one body.
func FuzzParseMessage(f *testing.F) {
	for _, body := range []string{"bide1 " + ledgerText + " 1 2 3", "bide1 " + strings.ToUpper(ledgerText) + " 0 0 0", "bide1 ", ""} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := bide.ParseMessage(body)
		if err != nil {
			require.ErrorIs(t, err, bide.ErrMessage)
			return
		}
		require.Equal(t, string(body), string(m.Body()))
	})
}

func TestLedgerID(t *testing.T) {
	t.Parallel()
	id := ledgerID(t)
	require.Equal(t, ledgerText, id.String())
	require.Equal(t, "0a1b2c3d", id.Short())
	capitals, err := bide.ParseLedgerID(strings.ToUpper(ledgerText))
	require.NoError(t, err)
	require.Equal(t, id, capitals)
	for _, bad := range []string{"", ledgerText[1:], ledgerText + "0", strings.ReplaceAll(ledgerText, "-", "0"), ledgerText[:35] + "x"} {
		_, err := bide.ParseLedgerID(bad)
		require.ErrorContains(t, err, "ledger id")
	}
}

func TestNamesOfStates(t *testing.T) {
	t.Parallel()
	require.Equal(t, "unknown", bide.Status(0).String(), "it is the zero value: nothing has been heard")
	require.Equal(t, "confirmed refused", bide.Confirmed.String()+" "+bide.Refused.String())
	require.Equal(t, "down", bide.SessionState(0).String())
	require.Equal(t, "blocked up", bide.SessionBlocked.String()+" "+bide.SessionUp.String())
}

func BenchmarkBody(b *testing.B) {
	m := bide.Message{Ledger: ledgerID(b), TaskID: 123456, RunAt: time.UnixMicro(1_700_000_000_000_001), DeliverAt: time.UnixMicro(1_700_000_000_000_000)}
	b.ReportAllocs()
	for b.Loop() {
		m.Body()
	}
}

func BenchmarkParseMessage(b *testing.B) {
	body := []byte("bide1 " + ledgerText + " 123456 1700000000000001 1699999999900000")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bide.ParseMessage(body); err != nil {
			b.Fatal(err)
		}
	}
}

func TestADeliveryIsAcknowledgedByItsDriver(t *testing.T) {
	t.Parallel()
	acked := 0
	d := bide.NewDelivery([]byte("body"), true, func() { acked++ })
	require.Equal(t, "body", string(d.Body))
	require.True(t, d.Redelivered)
	d.Ack()
	require.Equal(t, 1, acked)
}
