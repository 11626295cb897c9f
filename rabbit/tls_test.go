package rabbit_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/rabbit"
)

const serverName = "broker.internal"

// TestTLS goes to the real broker through a proxy that ends TLS and demands a
// client certificate.
func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	cfg := cleanConfig(t)
	plain := cfg.URL
	cfg.URL = terminateTLS(t, plain, ours)
	ours.issue(t, "client", "")
	theirs.issue(t, "client", "")
	t.Cleanup(func() { cfg.URL = plain; deleteQueues(t, cfg) })
	good := rabbit.TLS{
		CAFile: ours.file("ca.pem"), ServerName: serverName,
		CertFile: ours.file("client.pem"), KeyFile: ours.file("client.key"),
	}

	t.Run("authority, client certificate and server name", func(t *testing.T) {
		cfg.TLS = good
		p := newPublisher(t, cfg)
		brokertest.Start(t, p)
		requireConfirmed(t, p.Publish(t.Context(), sends(p, cfg, 10, 1)))
		receiveAll(t, consume(t, newSubscriber(t, cfg), true), 10)
	})
	for _, tt := range []struct {
		name   string
		change func(*rabbit.TLS)
	}{
		{"unknown authority", func(c *rabbit.TLS) { c.CAFile = theirs.file("ca.pem") }},
		{"the system's authorities", func(c *rabbit.TLS) { c.CAFile = "" }},
		{"the URL's host instead of the certificate's name", func(c *rabbit.TLS) { c.ServerName = "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg.TLS = good
			tt.change(&cfg.TLS)
			publisher, subscriber := startUp(t, cfg)
			requireFault(t, publisher, "connection to amqps://", "certificate is not trusted", "authority")
			requireFault(t, subscriber, "connection to amqps://", "certificate is not trusted", "authority")
		})
	}
	for _, tt := range []struct {
		name   string
		change func(*rabbit.TLS)
	}{
		{"no client certificate", func(c *rabbit.TLS) { c.CertFile, c.KeyFile = "", "" }},
		{"client certificate of another authority", func(c *rabbit.TLS) {
			c.CertFile, c.KeyFile = theirs.file("client.pem"), theirs.file("client.key")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg.TLS = good
			tt.change(&cfg.TLS)
			p := newPublisher(t, cfg)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			require.Eventually(t, func() bool {
				err := p.Session().Err // the library may be quicker than the broker's complaint
				return err != nil && strings.Contains(err.Error(), "tls: ")
			}, patience, time.Millisecond)
			cancel()
			require.NoError(t, <-ended)
		})
	}
}

// authority signs certificates and keeps them in files.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir(), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

// issue makes a certificate for a server of that name, or for a client.
func (a *authority) issue(t *testing.T, name, server string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if server != "" {
		template.DNSNames = []string{server}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	a.write(t, name+".pem", "CERTIFICATE", der)
	a.write(t, name+".key", "PRIVATE KEY", private)
	pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
	require.NoError(t, err)
	return pair
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// terminateTLS stands before the broker and returns the URL to use.
func terminateTLS(t *testing.T, address string, a *authority) string {
	t.Helper()
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{a.issue(t, "server", serverName)},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})
	require.NoError(t, err)
	broker := hostOf(t, address)
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { join(client, broker) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		connections.Wait()
	})
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.Scheme, u.Host = "amqps", listener.Addr().String()
	return u.String()
}

// join connects a client to the broker until either closes.
func join(client net.Conn, address string) {
	defer client.Close()
	if client.(*tls.Conn).Handshake() != nil {
		return
	}
	broker, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { defer broker.Close(); _, _ = io.Copy(broker, client) })
	both.Go(func() { defer client.Close(); _, _ = io.Copy(client, broker) })
	both.Wait()
}
