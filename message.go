package bide

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// MaxMessageSize bounds a message body, in bytes. The longest valid body is
// 102 bytes; anything longer is refused unread.
const MaxMessageSize = 128

// messageVersion opens every body, so that a later format is told from garbage.
const messageVersion = "bide1"

// ErrMessage reports a body that is not a Bide message.
var ErrMessage = errors.New("not a bide message")

// LedgerID names one ledger. It is made when the ledger is first migrated and
// is part of every message and of every queue, topic and group name, so that
// two ledgers on one broker cannot take each other's messages.
type LedgerID [16]byte

// ParseLedgerID reads the 36 character form of a UUID.
func ParseLedgerID(s string) (LedgerID, error) {
	var id LedgerID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, fmt.Errorf("ledger id %q: want a UUID of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", s)
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return LedgerID{}, fmt.Errorf("ledger id %q: %w", s, err)
	}
	return id, nil
}

// String returns the 36 character form of the UUID.
func (id LedgerID) String() string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Short returns the first 8 hexadecimal digits, the form used in queue, topic
// and group names.
func (id LedgerID) Short() string { return hex.EncodeToString(id[:4]) }

// Message is the claim check for one task.
type Message struct {
	Ledger LedgerID
	// TaskID is the task's id in its ledger. 0 marks a probe, which asks only
	// whether the way through the broker is open.
	TaskID int64
	// RunAt is the time the task was due when the message was made, to the
	// microsecond. Where the ledger says otherwise, the ledger is right.
	RunAt time.Time
	// DeliverAt is when the broker was asked to deliver, to the microsecond.
	DeliverAt time.Time
}

// ID returns the message's identity, the same for every copy of it: the task's
// id and the microsecond it is due.
func (m Message) ID() string {
	return strconv.FormatInt(m.TaskID, 10) + "-" + strconv.FormatInt(m.RunAt.UnixMicro(), 10)
}

// Probe reports whether the message belongs to no task.
func (m Message) Probe() bool { return m.TaskID == 0 }

// Body returns the message as it travels: one line of printable ASCII that an
// operator can read in a broker's console.
//
//	bide1 <ledger uuid> <task id> <run at, µs> <deliver at, µs>
func (m Message) Body() []byte {
	b := make([]byte, 0, MaxMessageSize)
	b = append(b, messageVersion+" "...)
	b = append(b, m.Ledger.String()...)
	for _, n := range []int64{m.TaskID, m.RunAt.UnixMicro(), m.DeliverAt.UnixMicro()} {
		b = append(b, ' ')
		b = strconv.AppendInt(b, n, 10)
	}
	return b
}

// ParseMessage reads what [Message.Body] wrote. Any other body is an error
// that wraps [ErrMessage] and quotes nothing of it.
func ParseMessage(body []byte) (Message, error) {
	if len(body) > MaxMessageSize {
		return Message{}, fmt.Errorf("%w: %d bytes, at most %d", ErrMessage, len(body), MaxMessageSize)
	}
	fields := bytes.Split(body, []byte{' '})
	if len(fields) != 5 || string(fields[0]) != messageVersion {
		return Message{}, fmt.Errorf("%w: %d bytes without the %s header", ErrMessage, len(body), messageVersion)
	}
	ledger, err := ParseLedgerID(string(fields[1]))
	if err != nil || ledger.String() != string(fields[1]) {
		return Message{}, fmt.Errorf("%w: field 2 is not a UUID in lower case", ErrMessage)
	}
	var n [3]int64
	for i, f := range fields[2:] {
		var ok bool
		if n[i], ok = parseDecimal(f); !ok {
			return Message{}, fmt.Errorf("%w: field %d is not a plain decimal number", ErrMessage, i+3)
		}
	}
	return Message{
		Ledger: ledger, TaskID: n[0],
		RunAt: time.UnixMicro(n[1]), DeliverAt: time.UnixMicro(n[2]),
	}, nil
}

// parseDecimal reads the one canonical form of a non-negative number, so that
// a message has exactly one body.
func parseDecimal(f []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(f), 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == string(f)
}
