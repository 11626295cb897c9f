package brokertest

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy passes TCP connections on to a server, as long as it is left alone.
type Proxy struct {
	listener net.Listener
	target   string
	tasks    sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	refuse bool
	paused chan struct{} // closed while bytes flow
}

// NewProxy starts a proxy on a port of its own, until t ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{listener: listener, target: target, conns: map[net.Conn]struct{}{}, paused: make(chan struct{})}
	close(p.paused)
	p.tasks.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is the address to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks every connection.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.Close()
	}
}

// Refuse decides whether new connections are closed at once.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// Pause stops all bytes, in both directions, without closing anything.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = make(chan struct{})
}

// Resume lets the bytes that were held, and all others, through.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.paused:
	default:
		close(p.paused)
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Resume()
	p.Cut()
	p.tasks.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.tasks.Go(func() { p.join(client) })
	}
}

func (p *Proxy) join(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.enter(client, server) {
		return
	}
	defer p.leave(client, server)
	var both sync.WaitGroup
	both.Go(func() { p.pipe(server, client) })
	both.Go(func() { p.pipe(client, server) })
	both.Wait()
}

// pipe copies until either end closes, then closes both.
func (p *Proxy) pipe(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		paused := p.paused
		p.mu.Unlock()
		<-paused
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) enter(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		return false
	}
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return true
}

func (p *Proxy) leave(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}
