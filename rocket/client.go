package rocket

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// resolver gives the client library the name servers. The library takes
// addresses without a scheme for IP addresses only, and cuts the scheme off
// before it dials.
func (c Config) resolver() primitive.NsResolver {
	addresses := make([]string, len(c.NameServers))
	for i, address := range c.NameServers {
		addresses[i] = "http://" + address
	}
	return primitive.NewPassthroughResolver(addresses)
}

func (c Config) clientCredentials() primitive.Credentials {
	return primitive.Credentials{AccessKey: c.AccessKey, SecretKey: c.SecretKey}
}

// instance names one client of the library. Two with one name share
// connections and life; and in containers the default, address and process id,
// is not unique.
func (c Config) instance(role string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("bide-%s-%s-%s", role, c.Ledger.Short(), hex.EncodeToString(b[:]))
}

// closeGrace bounds the wait for clients that are being shut down.
const closeGrace = 3 * time.Second

// closing is the shutting down of clients, which may take as long as the
// library's time-outs when a broker is gone, and which nobody needs to wait for
// but at the end.
type closing struct{ tasks sync.WaitGroup }

func (c *closing) add(shutdown func()) { c.tasks.Go(shutdown) }

// await waits until all clients are shut down, no longer than the grace.
func (c *closing) await() {
	closed := make(chan struct{})
	go func() {
		c.tasks.Wait()
		close(closed)
	}()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// UseLogger makes the client library log through logger, and less: its errors
// as warnings, its warnings as debugging, the rest not at all. What matters the
// driver reports itself. The library has one logger per process, without a
// lock: call UseLogger once, before anything else of this package.
func UseLogger(logger *slog.Logger) { rlog.SetLogger(libraryLog{logger}) }

// libraryLog is the library's idea of a logger.
type libraryLog struct{ log *slog.Logger }

var _ rlog.Logger = libraryLog{}

// Debug drops the message.
func (libraryLog) Debug(string, map[string]any) {}

// Info drops the message.
func (libraryLog) Info(string, map[string]any) {}

// Warning logs the message for debugging.
func (l libraryLog) Warning(msg string, fields map[string]any) {
	l.write(slog.LevelDebug, msg, fields)
}

// Error logs the message as a warning.
func (l libraryLog) Error(msg string, fields map[string]any) { l.write(slog.LevelWarn, msg, fields) }

// Fatal logs the message as an error, and no more.
func (l libraryLog) Fatal(msg string, fields map[string]any) { l.write(slog.LevelError, msg, fields) }

// Level does nothing: the level is the logger's.
func (libraryLog) Level(string) {}

// OutputPath does nothing: the output is the logger's.
func (libraryLog) OutputPath(string) error { return nil }

func (l libraryLog) write(level slog.Level, msg string, fields map[string]any) {
	l.log.Log(context.Background(), level, "rocketmq client", "said", msg, "fields", fields)
}
