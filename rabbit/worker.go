package rabbit

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

// The settings of the broker's dead-letter worker that suit tiers. By default
// a dead letter that the delivery queue did not take blocks 1 of 32 places for
// 180 s, new messages included: when the delivery queue comes back after a
// while, its tiers stay silent for three minutes.
const (
	workerTimeout  = 5 * time.Second // dead_letter_worker_publisher_confirm_timeout
	workerPrefetch = 512             // dead_letter_worker_consumer_prefetch
	// workerPatience is how long a dead letter is waited for.
	workerPatience = workerTimeout + 4*time.Second
	// confirmPatience is how long the broker may take to confirm it before.
	confirmPatience = 5 * time.Second
)

// checkWorker finds out when the dead-letter worker tries again. The API does
// not show its settings, so a message is let expire in a tier whose target does
// not exist until shortly after.
func checkWorker(ctx context.Context, s *session, cfg Config) []bide.Finding {
	const subject = "dead-letter worker"
	retried, err := deadLetterRetried(ctx, s, cfg)
	findings := []bide.Finding{{
		Severity: bide.SeverityInfo, Subject: subject,
		Problem: "its prefetch cannot be read from outside the broker",
		Remedy: fmt.Sprintf("ask rabbitmqctl eval 'application:get_env(rabbit, dead_letter_worker_consumer_prefetch).'; "+
			"{ok,%d} in advanced.config lets a tier deliver about twice as fast as the default 32", workerPrefetch),
	}}
	switch {
	case err != nil:
		findings = append(findings, bide.Finding{
			Severity: bide.SeverityWarning, Subject: subject, Problem: fmt.Sprintf("was not checked: %v", err),
			Remedy: "check again when the broker takes messages",
		})
	case !retried:
		findings = append(findings, bide.Finding{
			Severity: bide.SeverityWarning, Subject: subject,
			Problem: fmt.Sprintf("does not try again within %s: after the delivery queue was missing, its tiers stay silent for up to 3 minutes", workerPatience),
			Remedy:  fmt.Sprintf("set {rabbit, [{dead_letter_worker_publisher_confirm_timeout, %d}]} in advanced.config", workerTimeout.Milliseconds()),
		})
	}
	return findings
}

func deadLetterRetried(ctx context.Context, s *session, cfg Config) (bool, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return false, translate(err)
	}
	name := fmt.Sprintf("%s.%s.check.%s", cfg.Prefix, cfg.Ledger.Short(), rand.Text())
	source := queue{name, tierArguments(Quorum, time.Millisecond, name+".target")}
	source.args[amqp.QueueTTLArg] = time.Minute.Milliseconds() // gone even if nobody deletes it
	if err := declare(s.conn, source); err != nil {
		return false, err
	}
	// While it blocks the connection the broker answers to nothing, so there is
	// no cleaning up then.
	if err := expireOne(ctx, ch, source.name); err != nil {
		return false, translate(err)
	}
	if reason := s.blocked.Load(); reason != nil {
		return false, blockedError(*reason)
	}
	defer func() { _, _ = ch.QueueDelete(source.name, false, false, false) }()
	target := name + ".target"
	if _, err := ch.QueueDeclare(target, false, true, true, false, nil); err != nil {
		return false, translate(err)
	}
	arrived, err := ch.Consume(target, "", true, true, false, false, nil)
	if err != nil {
		return false, translate(err)
	}
	timer := time.NewTimer(workerPatience)
	defer timer.Stop()
	select {
	case _, ok := <-arrived:
		return ok, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// expireOne publishes a message and waits until it has left the queue as a
// dead letter, whose first way then led nowhere.
func expireOne(ctx context.Context, ch *amqp.Channel, queue string) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirm, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent})
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, confirmPatience)
	defer cancel()
	if _, err := confirm.WaitContext(waiting); err != nil {
		return fmt.Errorf("wait for a confirm: %w", err)
	}
	sleep(ctx, time.Second)
	return ctx.Err()
}
