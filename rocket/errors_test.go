package rocket

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	client "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// TestOutcomes holds the judgement of a send against what brokers and library
// answer, word for word.
func TestOutcomes(t *testing.T) {
	said := errors.New
	for _, tt := range []struct {
		name   string
		status primitive.SendStatus
		err    error
		want   bide.Status
		reason error
	}{
		{"stored", primitive.SendOK, nil, bide.Confirmed, nil},
		{"stored, the disk is slow", primitive.SendFlushDiskTimeout, nil, bide.Confirmed, nil},
		{"stored, the slave is slow", primitive.SendFlushSlaveTimeout, nil, bide.Confirmed, nil},
		{"stored, there is no slave", primitive.SendSlaveNotAvailable, nil, bide.Confirmed, nil},
		{"no meaning", primitive.SendUnknownError, nil, bide.Unknown, bide.ErrSessionDown},

		{"too far", 4, said("CODE: 13, DESC: timer message illegal, the delay time should not be bigger than the max delay 259200000ms; or if set del msg, the delay time should be bigger than the current time"), bide.Refused, bide.ErrRefused},
		{"wheel off", 4, said("CODE: 1, DESC: accurate timer message is not enabled, timerWheelEnable is false"), bide.Refused, bide.ErrRefused},
		{"slot full", 4, said("CODE: 1, DESC: timer message is under flow control, max num limit is 10 or the current value is greater than 10 and less than 11, trigger random flow control"), bide.Refused, bide.ErrRefused},
		{"disk full", 4, said("CODE: 14, DESC: service not available now. It may be caused by one of the following reasons: the broker's disk is full"), bide.Refused, bide.ErrRefused},
		{"busy", 4, said("CODE: 2, DESC: [TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 279ms, size of queue: 2"), bide.Refused, bide.ErrRefused},
		{"busy in some versions", 4, said("CODE: 1, DESC: [REJECTREQUEST]system busy, start flow control for a while"), bide.Refused, bide.ErrRefused},
		{"no such topic", 4, said("CODE: 17, DESC: topic[x] not exist, apply first please!"), bide.Refused, bide.ErrUnroutable},
		{"not allowed", 4, said("CODE: 16, DESC: the broker[127.0.0.1] sending message is forbidden"), bide.Refused, bide.ErrRefused},
		{"any other trouble", 4, said("CODE: 1, DESC: store putMessage return null"), bide.Unknown, bide.ErrRefused},

		{"no route", 4, said("the topic=x route info not found"), bide.Refused, bide.ErrSessionDown},
		{"no broker in the route", 4, said("topic=x route info not found"), bide.Refused, bide.ErrSessionDown},
		{"not running", 4, client.ErrNotRunning, bide.Refused, bide.ErrSessionDown},
		{"shut down", 4, client.ErrService, bide.Refused, bide.ErrSessionDown},
		{"no connection", 4, &net.OpError{Op: "dial", Err: said("connection refused")}, bide.Refused, bide.ErrSessionDown},
		{"written in part", 4, &net.OpError{Op: "write", Err: said("broken pipe")}, bide.Unknown, bide.ErrSessionDown},
		{"no answer", 4, client.ErrRequestTimeout, bide.Unknown, bide.ErrSessionDown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := outcomeOf(t.Context(), &primitive.SendResult{Status: tt.status}, tt.err)
			require.Equal(t, tt.want, got.Status)
			if tt.reason == nil {
				require.NoError(t, got.Err)
				return
			}
			require.ErrorIs(t, got.Err, tt.reason)
		})
	}
}

// TestCancelledOutcome: the reason is the caller's, not the library's.
func TestCancelledOutcome(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errMute)
	got := outcomeOf(ctx, primitive.NewSendResult(), client.ErrRequestTimeout)
	require.Equal(t, bide.Outcome{Status: bide.Unknown, Err: errMute}, got)
}

func TestUntilSilent(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		0: 0, 800 * time.Millisecond: 0, 900 * time.Millisecond: 400 * time.Millisecond, time.Second: 300 * time.Millisecond,
		1300 * time.Millisecond: 0, 30 * time.Second: 0, 31 * time.Second: 300 * time.Millisecond, 3601 * time.Second: 300 * time.Millisecond,
	} {
		require.Equal(t, want, untilSilent(age), "%s", age)
	}
}
