package remoting

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// version is what the questions are asked as, 4.9.4: the first that name
// servers answer with JSON by the book.
const version = 401

// ErrClosed is the end of a connection that [Conn.Close] ended.
var ErrClosed = errors.New("connection closed")

// Refusal is a server's answer other than success.
type Refusal struct {
	Code   int
	Remark string
}

func (r *Refusal) Error() string { return fmt.Sprintf("code %d: %s", r.Code, r.Remark) }

// Conn is a connection to a name server or a broker, safe for concurrent use.
type Conn struct {
	socket net.Conn
	sign   Credentials
	reader sync.WaitGroup

	writing sync.Mutex

	mu      sync.Mutex
	last    int32
	waiting map[int32]chan Frame
	err     error // why the connection ended

	done chan struct{}
}

// Dial connects within ctx and signs what it asks, when there are credentials.
func Dial(ctx context.Context, address string, sign Credentials) (*Conn, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &Conn{socket: socket, sign: sign, waiting: map[int32]chan Frame{}, done: make(chan struct{})}
	c.reader.Go(c.read)
	return c, nil
}

// Close ends the connection and waits for its reader.
func (c *Conn) Close() {
	_ = c.end(ErrClosed) // what it returns is what was given
	c.reader.Wait()
}

// Done is closed when the connection has ended; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is nil while the connection lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Call puts a question and waits for the answer. An answer other than success
// comes with an error that wraps a [*Refusal].
func (c *Conn) Call(ctx context.Context, code int, fields map[string]string, body []byte) (Frame, error) {
	request := Frame{Code: code, Language: "GO", Version: version, Body: body, Fields: c.sign.signed(fields, body)}
	opaque, answer, err := c.await()
	if err != nil {
		return Frame{}, err
	}
	defer c.forget(opaque)
	request.Opaque = opaque
	if err := c.write(ctx, request); err != nil {
		return Frame{}, err
	}
	select {
	case response := <-answer:
		if response.Code != 0 {
			return response, &Refusal{Code: response.Code, Remark: response.Remark}
		}
		return response, nil
	case <-c.done:
		return Frame{}, c.Err()
	case <-ctx.Done():
		return Frame{}, ctx.Err()
	}
}

// await makes room for an answer.
func (c *Conn) await() (int32, <-chan Frame, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	c.last++
	answer := make(chan Frame, 1)
	c.waiting[c.last] = answer
	return c.last, answer, nil
}

func (c *Conn) forget(opaque int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, opaque)
}

// write ends the connection when a frame was written in part.
func (c *Conn) write(ctx context.Context, request Frame) error {
	bytes, err := request.Append(nil)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	deadline, _ := ctx.Deadline() // the zero time is none
	if err := c.socket.SetWriteDeadline(deadline); err != nil {
		return c.end(err)
	}
	if _, err := c.socket.Write(bytes); err != nil {
		return c.end(fmt.Errorf("write: %w", err))
	}
	return nil
}

func (c *Conn) read() {
	r := bufio.NewReader(c.socket)
	for {
		f, err := ReadFrame(r)
		if err != nil {
			_ = c.end(fmt.Errorf("read: %w", err))
			return
		}
		if f.Flag&responseFlag == 0 {
			continue // a server's own question, which nobody here answers
		}
		c.mu.Lock()
		answer := c.waiting[f.Opaque]
		delete(c.waiting, f.Opaque)
		c.mu.Unlock()
		if answer != nil {
			answer <- f
		}
	}
}

// end returns the reason why the connection ended, which is err only the
// first time.
func (c *Conn) end(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.err = err
	close(c.done)
	_ = c.socket.SetDeadline(time.Unix(1, 0)) // release whoever reads or writes
	c.socket.Close()
	return err
}
