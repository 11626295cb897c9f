package rocket_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
	"github.com/bide-mq/bide/rocket"
)

func TestFactsOfRealBrokers(t *testing.T) {
	t.Parallel()
	four, five := shared(t, "4"), shared(t, "5")
	facts, err := rocket.Discover(t.Context(), four.config(rocket.Auto))
	require.NoError(t, err)
	require.Equal(t, rocket.Levels, facts.Mode)
	require.Equal(t, []time.Duration(levels.RocketMQ()), facts.Levels())
	require.Equal(t, 407, facts.Brokers[0].Version, "4.9.7")

	facts, err = rocket.Discover(t.Context(), five.config(rocket.Auto))
	require.NoError(t, err)
	require.Equal(t, rocket.Timers, facts.Mode)
	require.Equal(t, 2*time.Hour, facts.Horizon)
	require.Empty(t, facts.Levels())
	require.Equal(t, 513, facts.Brokers[0].Version, "5.5.0")

	facts, err = rocket.Discover(t.Context(), five.config(rocket.Levels))
	require.NoError(t, err)
	require.Equal(t, []time.Duration(levels.RocketMQ()), facts.Levels())
}

func TestImpossibleModes(t *testing.T) {
	t.Parallel()
	four, five := shared(t, "4"), shared(t, "5")
	_, err := rocket.Discover(t.Context(), four.config(rocket.Timers))
	requireFault(t, err, "broker broker-a at "+four.broker, "4.x line", "choose mode levels or auto")

	cfg := five.config(rocket.Timers)
	cfg.Horizon = 96 * time.Hour
	_, err = rocket.Discover(t.Context(), cfg)
	requireFault(t, err, "broker broker-a at "+five.broker, "timers up to 72h0m0s", "set the horizon to 71h59m50s or less")

	cfg = five.config(rocket.Auto)
	cfg.Cluster = "elsewhere"
	_, err = rocket.Discover(t.Context(), cfg)
	require.ErrorContains(t, err, "no broker has registered in cluster elsewhere")
}

// TestWrongOverride is the reason why the worker watches for early arrivals: a
// 4.x broker takes timer messages and delivers them at once.
func TestWrongOverride(t *testing.T) {
	t.Parallel()
	cfg := shared(t, "4").config(rocket.Timers)
	cfg.Version, cfg.MaxDelay = "5.5.0", time.Hour
	p, in := run(t, cfg), subscribe(t, cfg, true)
	require.True(t, p.Capabilities().Timers)
	send := inTimer(cfg, 1)
	send.Message.DeliverAt = send.Message.DeliverAt.Add(time.Hour)
	confirm(t, p, send)
	require.Greater(t, time.Until(in.next(t).message(t).DeliverAt), time.Hour-patience)
}

// TestOddBroker: a table of the operator's own, in no order, and short timers.
// Then the operator changes it while a relay runs.
func TestOddBroker(t *testing.T) {
	t.Parallel()
	o := newOwn(t, "5", "messageDelayLevel=4s 1s 2s 1m", "timerMaxDelaySec=20",
		"timerEnableRetryUntilSuccess=true", "flushDiskType=SYNC_FLUSH", "autoCreateTopicEnable=false")
	t.Run("levels", func(t *testing.T) {
		cfg := o.config(rocket.Levels)
		p, in := run(t, cfg), subscribe(t, cfg, true)
		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, time.Minute}
		require.Equal(t, want, p.Capabilities().Delays)
		for i, d := range want[:3] {
			confirm(t, p, inLevel(cfg, int64(i+1), i+1, d))
		}
		for range 3 {
			a := in.next(t)
			late := a.at.Sub(a.message(t).DeliverAt)
			require.GreaterOrEqual(t, late, -10*time.Millisecond, "task %d", a.message(t).TaskID)
			require.Less(t, late, 3*time.Second)
		}
		require.Equal(t, bide.Refused, p.Publish(t.Context(), []bide.Send{inLevel(cfg, 9, 5, time.Hour)})[0].Status)
	})
	t.Run("timers", func(t *testing.T) {
		cfg := o.config(rocket.Timers)
		p := run(t, cfg)
		require.Equal(t, 10*time.Second, p.Capabilities().Horizon)
		send := inTimer(cfg, 1)
		send.Message.DeliverAt = send.Message.DeliverAt.Add(time.Minute)
		outcome := p.Publish(t.Context(), []bide.Send{send})[0]
		require.Equal(t, bide.Refused, outcome.Status, "beyond timerMaxDelaySec")
		require.ErrorIs(t, outcome.Err, bide.ErrRefused)
		require.ErrorContains(t, outcome.Err, "delay time should not be bigger than the max delay")
	})
	t.Run("check", func(t *testing.T) {
		findings := rocket.Check(t.Context(), o.config(rocket.Auto))
		require.Equal(t, bide.SeverityWarning, findings[0].Severity)
		require.Contains(t, findings[0].Problem, "short timers only")
		require.Less(t, findings[1].Severity, bide.SeverityWarning, "%v", findings)
	})
	t.Run("changed", func(t *testing.T) {
		cfg := o.config(rocket.Levels)
		p := newPublisher(t, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		await(t, p, bide.SessionUp)
		o.do(t, "stop")
		o.set(t, "messageDelayLevel=1s 2s 4s 1m")
		o.do(t, "restart")
		requireFault(t, <-ended, "rocketmq "+o.nameServer, "has changed", "start the service again")
	})
}

func inLevel(cfg rocket.Config, id int64, level int, d time.Duration) bide.Send {
	return in(cfg, id, level, d)
}

// awaitFault asks until the answer stays the same.
func awaitFault(t testing.TB, cfg rocket.Config) (err error) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err = rocket.Discover(t.Context(), cfg)
		return errors.As(err, new(*bide.Fault))
	}, patience, 50*time.Millisecond, "%v", &err)
	return err
}

// set changes a setting of a stopped broker.
func (o *own) set(t testing.TB, setting string) {
	t.Helper()
	path := filepath.Join(o.data, "broker.conf")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(b, "\n"+setting+"\n"...), 0o644))
}

func TestCheck(t *testing.T) {
	t.Parallel()
	cfg := shared(t, "5").config(rocket.Auto)
	cfg.NameServers = append(cfg.NameServers, "127.0.0.1:1")
	findings := rocket.Check(t.Context(), cfg)
	for _, want := range []struct {
		severity bide.Severity
		problem  string
	}{
		{bide.SeverityWarning, "timerEnableRetryUntilSuccess=false"},
		{bide.SeverityWarning, "flushDiskType=ASYNC_FLUSH"},
		{bide.SeverityWarning, "is of no use"},
		{bide.SeverityInfo, "autoCreateTopicEnable=true"},
		{bide.SeverityInfo, "delays by timers up to 2h0m0s"},
		{bide.SeverityInfo, `messageDelayLevel "1s 5s 10s`},
		{bide.SeverityInfo, "runs V5_5_0"},
		{bide.SeverityInfo, "does not exist yet"},
		{bide.SeverityInfo, "has no consumer"},
	} {
		requireFinding(t, findings, want.severity, want.problem)
	}
	require.NotContains(t, findings[0].String(), secret)

	findings = rocket.Check(t.Context(), shared(t, "4").config(rocket.Timers))
	requireFinding(t, findings, bide.SeverityError, "4.x line")
	findings = rocket.Check(t.Context(), rocket.Config{})
	requireFinding(t, findings, bide.SeverityError, "name servers: none")
	findings = rocket.Check(t.Context(), installation{nameServer: "127.0.0.1:1"}.config(rocket.Auto))
	requireFinding(t, findings, bide.SeverityError, "connection refused")
}

func requireFinding(t *testing.T, findings []bide.Finding, severity bide.Severity, problem string) {
	t.Helper()
	for _, f := range findings {
		if f.Severity == severity && strings.Contains(f.Problem, problem) {
			require.NotEmpty(t, f.Subject)
			return
		}
	}
	require.Failf(t, "no such finding", "want %s: …%s…, have %v", severity, problem, findings)
}

// TestAccessControl: keys are needed, sign every request, and are kept out of
// every message.
func TestAccessControl(t *testing.T) {
	t.Parallel()
	o := newOwn(t, "4", "aclEnable=true")
	cfg := o.config(rocket.Auto)
	o.do(t, "stop")
	const rules = "accounts:\n- accessKey: bide-access\n  secretKey: " + secret + "\n  admin: true\n"
	require.NoError(t, os.WriteFile(filepath.Join(o.data, "conf", "plain_acl.yml"), []byte(rules), 0o644))
	o.do(t, "restart")

	wrong := cfg
	wrong.AccessKey, wrong.SecretKey = "bide-access", secret+"x"
	err := awaitFault(t, wrong)
	requireFault(t, err, "broker", "does not tell its configuration", "check the access key and the secret key")
	require.ErrorContains(t, err, "signature")
	require.NotContains(t, err.Error(), secret)

	cfg.AccessKey, cfg.SecretKey = "bide-access", secret
	cfg.Namespace = "shop"
	p, in := run(t, cfg), subscribe(t, cfg, true)
	confirm(t, p, now(cfg, 1), inLevel(cfg, 2, 1, time.Second))
	in.all(t, []int64{1, 2})
}
