package rabbit

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/bide-mq/bide"
)

var (
	errMute      = fmt.Errorf("%w: the broker does not answer", bide.ErrSessionDown)
	errClosed    = fmt.Errorf("%w: closed", bide.ErrSessionDown)
	errNone      = fmt.Errorf("%w: not connected", bide.ErrSessionDown)
	errCancelled = fmt.Errorf("%w: the broker cancelled the consumer", bide.ErrSessionDown)
)

// blockedError is the reason while the broker takes no publishes. The session
// is at fault and no level.
func blockedError(reason string) error {
	return fmt.Errorf("%w: connection blocked: %s", bide.ErrSessionDown, reason)
}

// isCode reports whether the broker itself answered with the AMQP reply code.
func isCode(err error, code int) bool {
	reply, ok := errors.AsType[*amqp.Error](err)
	return ok && reply.Server && reply.Code == code
}

// translateDial turns those answers to a connection attempt that stay the same
// into faults.
func translateDial(cfg Config, err error) error {
	uri, _ := cfg.uri()
	fault := &bide.Fault{Err: err, Finding: bide.Finding{Severity: bide.SeverityError, Subject: "connection to " + cfg.endpoint()}}
	switch {
	case isCode(err, amqp.AccessRefused), errors.Is(err, amqp.ErrCredentials):
		fault.Problem = fmt.Sprintf("the broker refuses user %q", uri.Username)
		fault.Remedy = "check the user's name and password; guest is for connections from the broker's own host only"
	case isCode(err, amqp.NotAllowed) && !limitReached(err):
		fault.Problem = fmt.Sprintf("user %q may not use virtual host %q, or there is none of that name", uri.Username, uri.Vhost)
		fault.Remedy = fmt.Sprintf("create it (rabbitmqctl add_vhost %s) and grant permissions on it (rabbitmqctl set_permissions), or correct the path of the URL", uri.Vhost)
	case untrusted(err):
		fault.Problem = "the broker's certificate is not trusted"
		fault.Remedy = "give the file of the authority that signed it, and as server name the one in the certificate"
	case errors.Is(err, amqp.ErrSASL):
		fault.Problem = "the broker offers none of the requested authentication mechanisms"
		fault.Remedy = "correct auth_mechanism in the URL, or enable the mechanism at the broker"
	default:
		return fmt.Errorf("%w: connect to %s: %w", bide.ErrSessionDown, cfg.endpoint(), err)
	}
	return fault
}

// doubtful reports whether a fault may also be a connection that was lost; it
// counts when it comes twice in a row. RabbitMQ says why it refuses a user only
// to clients that announce authentication_failure_close, which the library
// cannot. To the others it closes the socket after 3 s, and so does a broker
// that goes away.
func doubtful(fault *bide.Fault) bool { return errors.Is(fault, amqp.ErrCredentials) }

func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// limitReached tells a limit on connections, which passes, from a refusal.
// RabbitMQ gives both the same code, so only the text is left.
func limitReached(err error) bool { return strings.Contains(err.Error(), "limit") }

// translateQueue turns those refusals of an operation on a queue that stay the
// same into faults.
func translateQueue(operation, queue string, err error) error {
	fault := &bide.Fault{Err: err, Finding: bide.Finding{Severity: bide.SeverityError, Subject: "queue " + queue}}
	switch {
	case isCode(err, amqp.PreconditionFailed):
		fault.Problem = "it exists with other arguments"
		// Without --if-empty, which quorum queues do not know.
		fault.Remedy = "delete it once rabbitmqctl list_queues shows it empty (rabbitmqctl delete_queue " + queue + "), or choose another prefix"
	case isCode(err, amqp.AccessRefused):
		fault.Problem = "the user may not " + operation + " it"
		fault.Remedy = `grant configure and read on the queues, and write on the queues and amq.default (rabbitmqctl set_permissions -p VHOST USER '^PREFIX\.' '^(PREFIX\.|amq\.default$)' '^PREFIX\.')`
	case isCode(err, amqp.ResourceLocked):
		fault.Problem = "another connection owns it exclusively"
		fault.Remedy = "stop that client and delete the queue, or choose another prefix"
	default:
		return fmt.Errorf("%w: %s queue %s: %w", bide.ErrSessionDown, operation, queue, err)
	}
	return fault
}

// translateClose wraps the reason why a connection or a channel ended, nil
// when it was closed in good order.
func translateClose(cause *amqp.Error) error {
	if cause == nil {
		return errClosed
	}
	return fmt.Errorf("%w: %w", bide.ErrSessionDown, cause)
}

// translate wraps the error of a call to the library that failed with its
// channel or connection.
func translate(err error) error { return fmt.Errorf("%w: %w", bide.ErrSessionDown, err) }
