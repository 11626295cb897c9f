package rabbit_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rabbit"
)

// startUp runs a publisher and a subscriber until each has failed, and returns
// the errors.
func startUp(t *testing.T, cfg rabbit.Config) (publisher, subscriber error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	s := newSubscriber(t, cfg)
	go func() { ended <- s.Subscribe(ctx, func(d bide.Delivery) { d.Ack() }) }()
	publisher = newPublisher(t, cfg).Run(ctx)
	return publisher, <-ended
}

func requireFault(t *testing.T, err error, subject, problem, remedy string) {
	t.Helper()
	require.Error(t, err)
	fault := new(bide.Fault)
	require.ErrorAs(t, err, &fault)
	require.Equal(t, bide.SeverityError, fault.Severity)
	require.Contains(t, fault.Subject, subject)
	require.Contains(t, fault.Problem, problem)
	require.Contains(t, fault.Remedy, remedy)
	require.ErrorContains(t, err, subject)
	require.ErrorContains(t, err, remedy)
}

func requireFinding(t *testing.T, findings []bide.Finding, severity bide.Severity, subject, problem string) {
	t.Helper()
	for _, f := range findings {
		if f.Subject == subject && f.Severity == severity && bytes.Contains([]byte(f.Problem), []byte(problem)) {
			require.NotEmpty(t, f.Remedy)
			return
		}
	}
	require.Failf(t, "no such finding", "want %s on %s: …%s…, have %v", severity, subject, problem, findings)
}

func TestTopologyWithOtherArguments(t *testing.T) {
	t.Parallel()
	for _, of := range []rabbit.QueueType{rabbit.Quorum, rabbit.Classic} {
		t.Run(string(of), func(t *testing.T) {
			cfg := cleanConfig(t)
			cfg.QueueType = of
			names := cfg.Queues()
			for _, name := range []string{names[0], names[2]} {
				_, err := admin(t, cfg.URL).QueueDeclare(name, true, false, false, false,
					amqp.Table{"x-queue-type": string(of), "x-message-ttl": int64(12345)})
				require.NoError(t, err)
			}
			publisher, subscriber := startUp(t, cfg)
			for _, name := range []string{names[0], names[2]} {
				requireFault(t, publisher, names[0], "other arguments", "rabbitmqctl delete_queue "+names[0])
				require.ErrorContains(t, publisher, name, "every faulty queue is named")
			}
			requireFault(t, subscriber, names[0], "other arguments", "rabbitmqctl delete_queue "+names[0])
			findings := rabbit.Check(t.Context(), cfg)
			requireFinding(t, findings, bide.SeverityError, "queue "+names[2], "other arguments")
		})
	}
}

// cleanConfig is a configuration at the shared broker whose queues are removed
// afterwards.
func cleanConfig(t testing.TB) rabbit.Config {
	cfg := config(sharedURL(t))
	t.Cleanup(func() { deleteQueues(t, cfg) })
	return cfg
}

func TestMissingPermission(t *testing.T) {
	cfg := cleanConfig(t)
	management := variable(t, "BIDE_TEST_RABBITMQ_MANAGEMENT_URL")
	mine := `^bide\\.`
	for _, tt := range []struct {
		name, configure, write, read  string
		failsPublisher, failsConsumer bool
	}{
		{"all", mine, mine + `|^amq\\.default$`, mine, false, false},
		{"no configure", "^$", ".*", ".*", true, true},
		{"no write on the default exchange", ".*", mine, ".*", true, false},
		{"no read", ".*", ".*", "^$", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			user := "bide-" + brokertest.NewLedger().Short()
			api(t, management, "PUT", "users/"+user, `{"password":"`+secret+`","tags":""}`)
			t.Cleanup(func() {
				api(t, management, "DELETE", "users/"+user, "")
			})
			api(t, management, "PUT", "permissions/%2F/"+user,
				`{"configure":"`+tt.configure+`","write":"`+tt.write+`","read":"`+tt.read+`"}`)
			own := config(as(t, cfg.URL, user, secret))
			t.Cleanup(func() { own.URL = cfg.URL; deleteQueues(t, own) })
			if !tt.failsPublisher {
				brokertest.Start(t, newPublisher(t, own))
				return
			}
			publisher := newPublisher(t, own).Run(t.Context())
			requireFault(t, publisher, "queue bide.", "may not", "rabbitmqctl set_permissions")
			require.NotContains(t, publisher.Error(), secret)
			if !tt.failsConsumer {
				consume(t, newSubscriber(t, own), true)
				return
			}
			subscriber := newSubscriber(t, own).Subscribe(t.Context(), func(d bide.Delivery) { d.Ack() })
			requireFault(t, subscriber, own.DeliveryQueue(), "may not", "rabbitmqctl set_permissions")
		})
	}
}

// as returns the URL for another user.
func as(t testing.TB, address, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.User = url.UserPassword(user, password)
	return u.String()
}

func TestWrongVirtualHost(t *testing.T) {
	cfg := config(sharedURL(t) + "no-such-vhost")
	publisher, subscriber := startUp(t, cfg)
	for _, err := range []error{publisher, subscriber} {
		requireFault(t, err, "no-such-vhost", `virtual host "no-such-vhost"`, "rabbitmqctl add_vhost no-such-vhost")
	}
	findings := rabbit.Check(t.Context(), cfg)
	require.Contains(t, findings[0].Problem, "no-such-vhost")
	require.Equal(t, bide.SeverityError, findings[0].Severity)
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := config(as(t, sharedURL(t), "nobody", secret))
	p, err := rabbit.NewPublisher(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	err = p.Run(t.Context())
	requireFault(t, err, "connection to", `user "nobody"`, "password")
	require.NotContains(t, err.Error(), secret)
	require.NotContains(t, log.String(), secret)
	for _, f := range rabbit.Check(t.Context(), cfg) {
		require.NotContains(t, f.String(), secret)
	}
}

// TestUnreachableBrokerIsNoFault covers what the library mistakes for wrong
// credentials: a broker that goes away during the handshake.
func TestUnreachableBrokerIsNoFault(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	accepted := make(chan struct{}, 100)
	go func() {
		for n := 0; ; {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if n++; n%2 == 1 {
				_, _ = conn.Read(make([]byte, 8)) // the protocol header
				_, _ = conn.Write(connectionStart)
				_, _ = conn.Read(make([]byte, 512)) // the credentials
			}
			conn.Close()
			accepted <- struct{}{}
		}
	}()
	cfg := config("amqp://bide:" + secret + "@" + listener.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	p := newPublisher(t, cfg)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for range 5 { // it tries again and again
		select {
		case <-accepted:
		case err := <-ended:
			require.FailNow(t, "gave up", "%v", err)
		}
	}
	require.Equal(t, bide.SessionDown, p.Session().State)
	require.Error(t, p.Session().Err)
	require.NotContains(t, p.Session().Err.Error(), secret)
	cancel()
	require.NoError(t, <-ended)
}

// connectionStart is the frame that opens the broker's side of a handshake.
var connectionStart = []byte("\x01\x00\x00\x00\x00\x00\x1c\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US\xce")

// TestLongTier keeps the time to live in 64 bits: as a 32 bit number it would
// be negative from 24.8 days on.
func TestLongTier(t *testing.T) {
	cfg := cleanConfig(t)
	cfg.Tiers = levels.Table{30 * 24 * time.Hour}
	t.Cleanup(func() { deleteQueues(t, cfg) })
	p := newPublisher(t, cfg)
	brokertest.Start(t, p)
	o := p.Publish(t.Context(), []bide.Send{{Level: 1, Message: bide.Message{Ledger: cfg.Ledger, TaskID: 1, RunAt: time.Now(), DeliverAt: time.Now()}}})
	require.Equal(t, bide.Confirmed, o[0].Status)
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	management := variable(t, "BIDE_TEST_RABBITMQ_MANAGEMENT_URL")
	tests := []struct {
		name       string
		kind       string
		definition string
		queue      int
		severity   bide.Severity
		problem    string
		queueType  rabbit.QueueType
	}{
		{"shorter ttl", "policies", `{"message-ttl":100}`, 1, bide.SeverityError, "sets message-ttl to 100 ms", rabbit.Quorum},
		{"operator's ttl", "operator-policies", `{"message-ttl":100}`, 2, bide.SeverityError, "operator policy", rabbit.Quorum},
		{"longer ttl on the delivery queue", "policies", `{"message-ttl":100000000}`, 0, bide.SeverityError, "sets message-ttl", rabbit.Quorum},
		{"expires", "policies", `{"expires":100000000}`, 1, bide.SeverityError, "sets expires", rabbit.Quorum},
		{"overflow", "policies", `{"overflow":"drop-head"}`, 1, bide.SeverityError, "at-most-once", rabbit.Quorum},
		{"length", "policies", `{"max-length":100000}`, 1, bide.SeverityWarning, "bounds the queue's length", rabbit.Quorum},
		{"length in bytes", "policies", `{"max-length-bytes":100000000}`, 0, bide.SeverityWarning, "bounds the queue's length", rabbit.Quorum},
		{"length of a classic tier", "policies", `{"max-length":100000}`, 1, bide.SeverityError, "arrive early", rabbit.Classic},
	}
	results := make([]struct {
		queue     string
		publisher error
		findings  []bide.Finding
	}, len(tests))
	var waiting sync.WaitGroup
	for i, tt := range tests {
		cfg := cleanConfig(t)
		cfg.ManagementURL, cfg.QueueType = management, tt.queueType
		queue := cfg.Queues()[tt.queue]
		policy := tt.kind + "/%2F/" + queue
		api(t, management, "PUT", policy,
			`{"pattern":"^`+queue+`$","apply-to":"queues","priority":7,"definition":`+tt.definition+`}`)
		t.Cleanup(func() { api(t, management, "DELETE", policy, "") })
		r := &results[i]
		// All at once: each waits for the broker's statistics most of the time.
		waiting.Go(func() {
			r.queue = queue
			living := 8 * time.Second // longer than the broker's statistics take
			if tt.severity == bide.SeverityError {
				living = patience
			}
			ctx, cancel := context.WithTimeout(t.Context(), living)
			defer cancel()
			r.publisher = newPublisher(t, cfg).Run(ctx)
			r.findings = rabbit.Check(t.Context(), cfg)
		})
	}
	waiting.Wait()
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := results[i]
			if tt.severity == bide.SeverityError {
				requireFault(t, r.publisher, r.queue, tt.problem, "exclude the queue from the policy")
			} else {
				require.NoError(t, r.publisher)
			}
			requireFinding(t, r.findings, tt.severity, "queue "+r.queue, tt.problem)
		})
	}
}
