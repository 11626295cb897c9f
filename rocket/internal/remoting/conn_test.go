package remoting_test

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/rocket/internal/remoting"
)

// serve answers each request by answer until t ends, and returns the address.
// A nil answer is none.
func serve(t *testing.T, answer func(net.Conn, remoting.Frame) []remoting.Frame) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var tasks sync.WaitGroup
	var conns sync.Map
	tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Store(conn, true)
			tasks.Go(func() { converse(conn, answer) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		conns.Range(func(conn, _ any) bool { conn.(net.Conn).Close(); return true })
		tasks.Wait()
	})
	return listener.Addr().String()
}

func converse(conn net.Conn, answer func(net.Conn, remoting.Frame) []remoting.Frame) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		request, err := remoting.ReadFrame(r)
		if err != nil {
			return
		}
		for _, f := range answer(conn, request) {
			b, _ := f.Append(nil)
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}
}

func response(to remoting.Frame, code int, remark, body string) remoting.Frame {
	return remoting.Frame{Opaque: to.Opaque, Flag: 1, Code: code, Remark: remark, Body: []byte(body), Version: 407}
}

func dial(t *testing.T, address string, sign remoting.Credentials) *remoting.Conn {
	conn, err := remoting.Dial(t.Context(), address, sign)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func TestCallsDoNotWaitForEachOther(t *testing.T) {
	var first remoting.Frame
	arrived := make(chan struct{})
	conn := dial(t, serve(t, func(_ net.Conn, f remoting.Frame) []remoting.Frame {
		if f.Code == 1 {
			first = f
			close(arrived)
			return nil
		}
		return []remoting.Frame{response(f, 0, "", "second"), response(first, 0, "", "first")}
	}), remoting.Credentials{})
	got := make(chan string, 1)
	go func() {
		f, _ := conn.Call(t.Context(), 1, nil, nil)
		got <- string(f.Body)
	}()
	<-arrived
	f, err := conn.Call(t.Context(), 2, nil, nil)
	require.NoError(t, err)
	require.Equal(t, "second", string(f.Body))
	require.Equal(t, "first", <-got)
	require.Zero(t, conn.Waiting())
}

func TestRefusal(t *testing.T) {
	conn := dial(t, serve(t, func(_ net.Conn, f remoting.Frame) []remoting.Frame {
		return []remoting.Frame{response(f, remoting.NoPermission, "not you", "")}
	}), remoting.Credentials{})
	_, version, err := conn.BrokerConfig(t.Context())
	require.True(t, remoting.IsRefusal(err, remoting.NoPermission))
	require.ErrorContains(t, err, "not you")
	require.Equal(t, 407, version, "the version comes with a refusal, too")
}

func TestMuteServer(t *testing.T) {
	conn := dial(t, serve(t, func(net.Conn, remoting.Frame) []remoting.Frame { return nil }), remoting.Credentials{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := conn.Call(ctx, 1, nil, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, conn.Waiting(), "nothing is left of a call that gave up")
	require.NoError(t, conn.Err())
}

func TestOddServers(t *testing.T) {
	for name, answer := range map[string]func(net.Conn, remoting.Frame) []remoting.Frame{
		"an answer that nobody waits for": func(_ net.Conn, f remoting.Frame) []remoting.Frame {
			return []remoting.Frame{{Opaque: 12345, Flag: 1}, response(f, 0, "", "")}
		},
		"a question": func(_ net.Conn, f remoting.Frame) []remoting.Frame {
			return []remoting.Frame{{Opaque: f.Opaque, Code: 40}, response(f, 0, "", "")}
		},
		"an answer twice": func(_ net.Conn, f remoting.Frame) []remoting.Frame {
			return []remoting.Frame{response(f, 0, "", ""), response(f, 0, "", "")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, serve(t, answer), remoting.Credentials{})
			for range 3 {
				_, err := conn.Call(t.Context(), 1, nil, nil)
				require.NoError(t, err)
			}
		})
	}
}

func TestLostConnection(t *testing.T) {
	for name, last := range map[string]string{"closed": "", "garbage": strings.Repeat("nonsense", 10)} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, serve(t, func(c net.Conn, _ remoting.Frame) []remoting.Frame {
				_, _ = c.Write([]byte(last))
				c.Close()
				return nil
			}), remoting.Credentials{})
			_, err := conn.Call(t.Context(), 1, nil, nil)
			require.Error(t, err)
			<-conn.Done()
			require.Equal(t, conn.Err(), err, "every call has the connection's reason")
			_, again := conn.Call(t.Context(), 1, nil, nil)
			require.Equal(t, err, again)
		})
	}
}

func TestCloseReleasesCalls(t *testing.T) {
	conn := dial(t, serve(t, func(net.Conn, remoting.Frame) []remoting.Frame { return nil }), remoting.Credentials{})
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Call(t.Context(), 1, nil, nil)
		ended <- err
	}()
	require.Eventually(t, func() bool { return conn.Waiting() == 1 }, 10*time.Second, time.Millisecond)
	conn.Close()
	require.ErrorIs(t, <-ended, remoting.ErrClosed)
	conn.Close()
}

// TestSignature holds the signature against the one that openssl makes of what
// RocketMQ signs: the values of AccessKey, a and b, then the body.
//
//	printf ak12body | openssl dgst -sha1 -hmac sk -binary | base64
func TestSignature(t *testing.T) {
	asked := make(chan remoting.Frame, 1)
	conn := dial(t, serve(t, func(_ net.Conn, f remoting.Frame) []remoting.Frame {
		asked <- f
		return []remoting.Frame{response(f, 0, "", "")}
	}), remoting.Credentials{AccessKey: "ak", SecretKey: "sk"})
	fields := map[string]string{"b": "2", "a": "1"}
	_, err := conn.Call(t.Context(), 1, fields, []byte("body"))
	require.NoError(t, err)
	f := <-asked
	require.Equal(t, "ak", f.Fields["AccessKey"])
	require.Equal(t, "45zJhq303mKsOzjx7JMuW5cm+kI=", f.Fields["Signature"])
	require.Equal(t, map[string]string{"b": "2", "a": "1"}, fields, "the caller's fields stay as they were")
}
