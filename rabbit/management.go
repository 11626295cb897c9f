package rabbit

import (
	"errors"
	"net/url"
)

// managementBase reads ManagementURL, nil when there is none. Like the broker's
// URL it is never quoted.
func (c Config) managementBase() (*url.URL, error) {
	if c.ManagementURL == "" {
		return nil, nil
	}
	base, err := url.Parse(c.ManagementURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("management url: want http://user:password@host:port or https://… with reserved characters percent-encoded")
	}
	return base, nil
}
