package rabbit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
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

const (
	managementTimeout = 5 * time.Second
	// managementLimit bounds one answer, in bytes.
	managementLimit = 16 << 20
	pageSize        = 100
)

// management is a client of the broker's management API, which shows what AMQP
// does not: policies, and queues that nobody named.
type management struct {
	base   *url.URL
	vhost  string
	client *http.Client
}

func newManagement(cfg Config) (*management, error) {
	base, err := cfg.managementBase()
	if err != nil {
		return nil, err
	}
	uri, err := cfg.uri()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	if transport.TLSClientConfig, err = cfg.TLS.config(); err != nil {
		return nil, err
	}
	return &management{base: base, vhost: uri.Vhost, client: &http.Client{Timeout: managementTimeout, Transport: transport}}, nil
}

// queueInfo is what the API says of a queue. Counts and policies come from
// statistics that the broker renews every 5 s and has not got at first.
type queueInfo struct {
	Name      string          `json:"name"`
	Type      QueueType       `json:"type"`
	Messages  int             `json:"messages_ready"`
	Members   []string        `json:"members"`
	Online    []string        `json:"online"`
	Policy    string          `json:"policy"`
	Operator  string          `json:"operator_policy"`
	Effective json.RawMessage `json:"effective_policy_definition"`
}

// queues lists the queues whose name begins with prefix.
func (m *management) queues(ctx context.Context, prefix string) (map[string]queueInfo, error) {
	found := map[string]queueInfo{}
	for page, pages := 1, 1; page <= pages; page++ {
		var answer struct {
			Items []queueInfo `json:"items"`
			Pages int         `json:"page_count"`
		}
		query := url.Values{
			"page": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(pageSize)},
			"use_regex": {"true"}, "name": {"^" + regexp.QuoteMeta(prefix)},
		}
		if err := m.get(ctx, query, &answer, "queues", m.vhost); err != nil {
			return nil, err
		}
		for _, q := range answer.Items {
			found[q.Name] = q
		}
		pages = answer.Pages
	}
	return found, nil
}

// node is what the API says of a node of the cluster.
type node struct {
	Name        string `json:"name"`
	Running     bool   `json:"running"`
	MemoryAlarm bool   `json:"mem_alarm"`
	DiskAlarm   bool   `json:"disk_free_alarm"`
}

func (m *management) nodes(ctx context.Context) (nodes []node, err error) {
	err = m.get(ctx, nil, &nodes, "nodes")
	return nodes, err
}

// disabledFlag reports whether the broker knows the feature flag and has it
// switched off.
func (m *management) disabledFlag(ctx context.Context, name string) (bool, error) {
	var flags []struct {
		Name  string `json:"name"`
		State string `json:"state"`
	}
	if err := m.get(ctx, nil, &flags, "feature-flags"); err != nil {
		return false, err
	}
	for _, f := range flags {
		if f.Name == name {
			return f.State == "disabled", nil
		}
	}
	return false, nil
}

// errDenied: the API knows who asks, or not, and does not answer him.
var errDenied = errors.New("denied")

// get reads one resource. Its errors name the path only.
func (m *management) get(ctx context.Context, query url.Values, into any, path ...string) error {
	for i, part := range path {
		path[i] = url.PathEscape(part) // a virtual host is often a slash
	}
	u := m.base.JoinPath(append([]string{"api"}, path...)...)
	u.User, u.RawQuery = nil, query.Encode()
	resource := u.EscapedPath()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("management %s: %w", resource, err)
	}
	if user := m.base.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	response, err := m.client.Do(request)
	if err != nil {
		return fmt.Errorf("management %s: %w", resource, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("management %s: %w: %s", resource, errDenied, response.Status)
	default:
		return fmt.Errorf("management %s: %s", resource, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, managementLimit)).Decode(into); err != nil {
		return fmt.Errorf("management %s: decode answer: %w", resource, err)
	}
	return nil
}
