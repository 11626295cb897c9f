package rabbit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS holds the files and the name for an amqps connection. They are read for
// each connection, so that renewed certificates are taken up.
type TLS struct {
	// CAFile holds the authorities to trust, in PEM. Defaults to the system's.
	CAFile string
	// CertFile and KeyFile hold the client's certificate and key, in PEM.
	// Default to none.
	CertFile, KeyFile string
	// ServerName is the name that the broker's certificate must carry.
	// Defaults to the URL's host.
	ServerName string
}

// validateTLS also reads the files: a service that cannot read its key fails
// at start-up and not at the first reconnect.
func (c Config) validateTLS() error {
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		return errors.New("tls: a client certificate needs both its certificate file and its key file")
	}
	uri, err := c.uri()
	if err != nil {
		return nil // reported as the URL's fault
	}
	if uri.Scheme != "amqps" {
		if c.TLS != (TLS{}) {
			return errors.New("tls: set for an amqp URL, want amqps://")
		}
		return nil
	}
	_, err = c.TLS.config()
	return err
}

// config never skips verification; the library fills in the URL's host when
// ServerName is empty.
func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls: read authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: %s holds no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls: read client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
