package rocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	client "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/rocket/internal/remoting"
)

// errChanged ends a publisher that has been running, too.
var errChanged = errors.New("the plan was made for what it was")

var (
	errMute   = fmt.Errorf("%w: the broker does not answer", bide.ErrSessionDown)
	errNone   = fmt.Errorf("%w: not connected", bide.ErrSessionDown)
	errClosed = fmt.Errorf("%w: closed", bide.ErrSessionDown)
	errSlow   = fmt.Errorf("%w: sends are not answered", bide.ErrSessionDown)
	// errReturned ends a session so that the next one has all brokers.
	errReturned = fmt.Errorf("%w: a missing broker is back", bide.ErrSessionDown)
)

// translate wraps the error of a question to a server. Refusals that stay the
// same become faults.
func translate(subject string, err error) error {
	refusal, ok := errors.AsType[*remoting.Refusal](err)
	if ok && denied(refusal) {
		return &bide.Fault{Err: err, Finding: bide.Finding{
			Severity: bide.SeverityError, Subject: subject, Problem: "denies access",
			Remedy: "check the access key and the secret key, and grant publishing and subscribing on topic and group",
		}}
	}
	return fmt.Errorf("%w: %s: %w", bide.ErrSessionDown, subject, err)
}

// denied tells access control from other trouble. 5.x has a code for it; 4.x
// answers SYSTEM_ERROR with the name of its exception.
func denied(r *remoting.Refusal) bool {
	return r.Code == remoting.NoPermission || r.Code == remoting.SystemError && strings.Contains(r.Remark, "AclException")
}

// sendError is how the client library words a broker's refusal; it has no type
// for it.
var sendError = regexp.MustCompile(`^CODE: (\d+), DESC: `)

// outcomeOf judges what the client library returned for a send. ctx is the one
// of the send.
//
// A status other than OK (FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT,
// SLAVE_NOT_AVAILABLE) means that the master has the message and does not vouch
// for its disk or its slave. It counts as confirmed: were it unknown, a cluster
// without a slave would be sent every task again and again. What a crash loses
// the sweep finds.
func outcomeOf(ctx context.Context, result *primitive.SendResult, err error) bide.Outcome {
	if err == nil {
		if result.Status == primitive.SendUnknownError {
			return bide.Outcome{Status: bide.Unknown, Err: fmt.Errorf("%w: an answer without a meaning", bide.ErrSessionDown)}
		}
		return bide.Outcome{Status: bide.Confirmed}
	}
	if code := sendError.FindStringSubmatch(err.Error()); code != nil {
		n, _ := strconv.Atoi(code[1])
		return refusalOf(n, err)
	}
	if neverSent(err) {
		return bide.Outcome{Status: bide.Refused, Err: fmt.Errorf("%w: %w", bide.ErrSessionDown, err)}
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, client.ErrRequestTimeout) {
		return bide.Outcome{Status: bide.Unknown, Err: cause}
	}
	return bide.Outcome{Status: bide.Unknown, Err: fmt.Errorf("%w: %w", bide.ErrSessionDown, err)}
}

// refusalOf judges a broker's answer by its code. Only SYSTEM_ERROR may follow
// a message that was stored.
func refusalOf(code int, err error) bide.Outcome {
	switch code {
	case remoting.TopicNotExist:
		return bide.Outcome{Status: bide.Refused, Err: fmt.Errorf("%w: %w", bide.ErrUnroutable, err)}
	case remoting.SystemError:
		if strings.Contains(err.Error(), "timer message") || busy(err) {
			break
		}
		return bide.Outcome{Status: bide.Unknown, Err: fmt.Errorf("%w: %w", bide.ErrRefused, err)}
	}
	return bide.Outcome{Status: bide.Refused, Err: fmt.Errorf("%w: %w", bide.ErrRefused, err)}
}

// busy reports whether the broker turned the message away before it looked at
// it, to protect itself: [REJECTREQUEST]system busy, [TIMEOUT_CLEAN_QUEUE]broker
// busy and others. The code is SYSTEM_BUSY in most versions and SYSTEM_ERROR in
// some.
func busy(err error) bool {
	return err != nil && (strings.HasPrefix(err.Error(), "CODE: 2,") ||
		strings.Contains(err.Error(), "]broker busy") || strings.Contains(err.Error(), "]system busy"))
}

// neverSent reports whether the error came before a byte was written: no route,
// no connection, or a client that is shut down.
func neverSent(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	return errors.Is(err, client.ErrNotRunning) || errors.Is(err, client.ErrService) || noRoute(err)
}

// noRoute reports whether the library does not know where the topic is. It has
// no type for that either.
func noRoute(err error) bool { return strings.HasSuffix(err.Error(), "route info not found") }
