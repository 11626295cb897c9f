package rabbit

import (
	"context"
	"net"
	"time"
)

// socket bounds every write. The client library sets no write deadline, so
// that a broker which stops reading would hang publishing, acknowledging and
// closing for ever once the buffers are full; a context does not free them.
type socket struct {
	net.Conn
	timeout time.Duration
}

func (s *socket) Write(b []byte) (int, error) {
	if err := s.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return 0, err
	}
	return s.Conn.Write(b)
}

// connect dials and sets the deadline for the TLS and AMQP handshakes, which
// the library clears when the connection is open.
func connect(ctx context.Context, addr string, cfg Config) (*socket, error) {
	deadline := time.Now().Add(cfg.DialTimeout)
	dialer := net.Dialer{Deadline: deadline}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	return &socket{conn, cfg.ConfirmTimeout}, nil
}
