package rocket

import (
	"cmp"
	"errors"
	"fmt"
)

// Severity is how bad a [Finding] is.
type Severity uint8

const (
	// Info is worth knowing and needs nothing done.
	Info Severity = iota
	// Warning does not break a promise today.
	Warning
	// Error breaks one: tasks fire early, late by the sweep only, or not
	// through the broker at all.
	Error
)

func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	default:
		return "info"
	}
}

// MarshalText makes the severity a word in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that the checks have found.
type Finding struct {
	Severity Severity `json:"severity"`
	// Subject is what it is about: a broker, the topic or the connection.
	Subject string `json:"subject"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy,omitempty"`
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s: %s", f.Subject, f.Problem)
	if f.Remedy != "" {
		s += "; " + f.Remedy
	}
	return s
}

// Fault is a finding of severity Error that ends [Discover], [Publisher.Run] or
// [Subscriber.Subscribe]: trying again does not mend it.
type Fault struct {
	Finding
	// Err is the server's own answer, nil when the server took no offence.
	Err error

	// always: it ends a publisher that has been running, too.
	always bool
}

func (f *Fault) Error() string {
	if f.Err == nil {
		return f.String()
	}
	return fmt.Sprintf("%s: %v", f.Finding, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// found turns an error of the driver into a finding.
func found(subject string, err error) Finding {
	if fault, ok := errors.AsType[*Fault](err); ok {
		f := fault.Finding
		if fault.Err != nil {
			f.Problem = fmt.Sprintf("%s (%v)", f.Problem, fault.Err)
		}
		return f
	}
	return Finding{Severity: Error, Subject: subject, Problem: err.Error()}
}

// worstFirst orders findings.
func worstFirst(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Subject, b.Subject))
}
