package remoting_test

import (
	"bufio"
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bide-mq/bide/rocket/internal/remoting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func read(b []byte) (remoting.Frame, error) {
	return remoting.ReadFrame(bufio.NewReader(bytes.NewReader(b)))
}

func TestFrame(t *testing.T) {
	frame := remoting.Frame{
		Code: 105, Language: "GO", Version: 401, Opaque: -7, Flag: 1, Remark: "because",
		Fields: map[string]string{"topic": "T"}, Body: []byte{0, 1, 0xff},
	}
	b, err := frame.Append(nil)
	require.NoError(t, err)
	got, err := read(b)
	require.NoError(t, err)
	require.Equal(t, frame, got)
}

// TestBrokersFrame reads what a 5.5.0 broker sends, fields that nobody here
// knows included.
func TestBrokersFrame(t *testing.T) {
	header := `{"code":0,"flag":1,"language":"JAVA","opaque":3,"serializeTypeCurrentRPC":"JSON","version":513,"extFields":{"offset":"12"}}`
	b := append([]byte{0, 0, 0, byte(4 + len(header)), 0, 0, 0, byte(len(header))}, header...)
	got, err := read(b)
	require.NoError(t, err)
	require.Equal(t, 513, got.Version)
	require.Equal(t, int32(3), got.Opaque)
	require.Equal(t, map[string]string{"offset": "12"}, got.Fields)
	require.Empty(t, got.Body)
}

func TestFrameFaults(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
		want error
	}{
		{"nothing", nil, io.EOF},
		{"half a length", []byte{0, 0}, io.ErrUnexpectedEOF},
		{"no room for a header", []byte{0, 0, 0, 3, 0, 0, 0}, remoting.ErrFrame},
		{"too long", []byte{0x7f, 0xff, 0xff, 0xff}, remoting.ErrFrame},
		{"negative length", []byte{0xff, 0xff, 0xff, 0xff}, remoting.ErrFrame},
		{"cut off", []byte{0, 0, 0, 9, 0, 0, 0, 2, '{'}, io.ErrUnexpectedEOF},
		{"header beyond the frame", []byte{0, 0, 0, 6, 0, 0, 0, 3, '{', '}'}, remoting.ErrFrame},
		{"RocketMQ's own header encoding", []byte{0, 0, 0, 6, 1, 0, 0, 2, '{', '}'}, remoting.ErrFrame},
		{"header that is no JSON", []byte{0, 0, 0, 6, 0, 0, 0, 2, '{', '{'}, remoting.ErrFrame},
		{"an HTTP server", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), remoting.ErrFrame},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(tt.in)
			require.ErrorIs(t, err, tt.want)
		})
	}
}

func TestFrameTooLongToSend(t *testing.T) {
	_, err := remoting.Frame{Body: make([]byte, 16<<20)}.Append(nil)
	require.ErrorIs(t, err, remoting.ErrFrame)
}

// FuzzFrame: whatever comes, reading ends, and what was read can be sent.
func FuzzFrame(f *testing.F) {
	for _, frame := range []remoting.Frame{{}, {Code: 1, Flag: 1, Opaque: 9, Body: []byte("x")}, {Fields: map[string]string{"a": "b"}}} {
		b, err := frame.Append(nil)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte{0, 0, 0, 6, 0, 0, 0, 2, '{', '}'})
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := read(b)
		if err != nil {
			return
		}
		again, err := frame.Append(nil)
		require.NoError(t, err)
		got, err := read(again)
		require.NoError(t, err)
		if len(frame.Fields) == 0 {
			frame.Fields = nil // an empty object and none are the same
		}
		require.Equal(t, frame, got)
	})
}
