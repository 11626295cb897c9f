package rabbit

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

var (
	errMute      = fmt.Errorf("%w: the broker does not answer", bide.ErrSessionDown)
	errClosed    = fmt.Errorf("%w: closed", bide.ErrSessionDown)
	errCancelled = fmt.Errorf("the broker cancelled the consumer: %w", bide.ErrSessionDown)
	errNone      = fmt.Errorf("%w: not connected", bide.ErrSessionDown)
)

// Fault is something wrong with the broker's set-up, or with the driver's,
// that trying again does not mend.
type Fault struct {
	// Subject is what is wrong: a queue, or the connection.
	Subject string
	Problem string
	Remedy  string
	// Err is the broker's own answer.
	Err error
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s: %s; %s: %v", f.Subject, f.Problem, f.Remedy, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// permanent reports whether trying again is pointless.
func permanent(err error) bool {
	var fault *Fault
	return errors.As(err, &fault)
}

// isCode reports whether the broker itself answered with the AMQP reply code.
// Errors that the library makes up are left out: it reports a connection that
// ends during the handshake as refused credentials.
func isCode(err error, code int) bool {
	var reply *amqp.Error
	return errors.As(err, &reply) && reply.Server && reply.Code == code
}

// translateDial turns the answers to a connection attempt that stay the same
// into faults.
func translateDial(cfg Config, err error) error {
	uri, _ := cfg.uri()
	fault := &Fault{Subject: "connection to " + cfg.endpoint(), Err: err}
	switch {
	case isCode(err, amqp.AccessRefused):
		fault.Problem = fmt.Sprintf("the broker refuses user %q", uri.Username)
		fault.Remedy = "check the user's name and password, and that guest is used from the broker's own host only"
	case isCode(err, amqp.NotAllowed) && !limitReached(err):
		fault.Problem = fmt.Sprintf("user %q may not use virtual host %q, or there is none of that name", uri.Username, uri.Vhost)
		fault.Remedy = fmt.Sprintf("create it (rabbitmqctl add_vhost %s) and grant permissions on it, or correct the URL's path", uri.Vhost)
	case errors.Is(err, amqp.ErrSASL):
		fault.Problem = "the broker offers none of the requested authentication mechanisms"
		fault.Remedy = "correct auth_mechanism in the URL or enable the mechanism at the broker"
	default:
		return fmt.Errorf("%w: connect to %s: %w", bide.ErrSessionDown, cfg.endpoint(), err)
	}
	return fault
}

// limitReached tells a limit on connections, which passes, from a refusal.
// RabbitMQ gives both the same code, so only the text is left.
func limitReached(err error) bool { return strings.Contains(err.Error(), "limit") }

// translateDeclare turns the refusal of a queue into a fault.
func translateDeclare(queue string, err error) error {
	fault := &Fault{Subject: "queue " + queue, Err: err}
	switch {
	case isCode(err, amqp.PreconditionFailed):
		fault.Problem = "it exists with other arguments"
		fault.Remedy = "delete it once it is empty (rabbitmqctl delete_queue " + queue + " --if-empty), or choose another prefix"
	case isCode(err, amqp.AccessRefused):
		fault.Problem = "the user lacks a permission"
		fault.Remedy = `grant configure and read on the queues and write on the queues and amq.default, such as rabbitmqctl set_permissions -p VHOST USER '^bide\.' '^(bide\.|amq\.default$)' '^bide\.' with your prefix`
	case isCode(err, amqp.ResourceLocked):
		fault.Problem = "another connection owns it exclusively"
		fault.Remedy = "stop that client and delete the queue, or choose another prefix"
	default:
		return fmt.Errorf("%w: declare queue %s: %w", bide.ErrSessionDown, queue, err)
	}
	return fault
}

// translateClose wraps why a connection or a channel ended.
func translateClose(err error) error {
	var reply *amqp.Error
	if err == nil || errors.As(err, &reply) && reply == nil {
		return errClosed
	}
	return fmt.Errorf("%w: %w", bide.ErrSessionDown, err)
}

func blockedError(reason string) error {
	return fmt.Errorf("%w: connection blocked: %s", bide.ErrSessionDown, reason)
}
