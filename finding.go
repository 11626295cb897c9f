package bide

import (
	"cmp"
	"errors"
	"fmt"
)

// Severity is how bad a [Finding] is.
type Severity uint8

const (
	// SeverityInfo is worth knowing and needs nothing done.
	SeverityInfo Severity = iota
	// SeverityWarning does not break a promise today.
	SeverityWarning
	// SeverityError breaks one.
	SeverityError
)

func (s Severity) String() string {
	switch s {
	case SeverityError:
		return "error"
	case SeverityWarning:
		return "warning"
	default:
		return "info"
	}
}

// MarshalText makes the severity a word in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that a check has found, for an operator to read.
type Finding struct {
	Severity Severity `json:"severity"`
	// Subject is what it is about: a queue, a table, a place in a file.
	Subject string `json:"subject"`
	Problem string `json:"problem"`
	// Remedy is what to do about it; empty where that is plain.
	Remedy string `json:"remedy,omitempty"`
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s: %s", f.Subject, f.Problem)
	if f.Remedy != "" {
		s += "; " + f.Remedy
	}
	return s
}

// WorstFirst orders findings, those of one subject together.
func WorstFirst(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Subject, b.Subject))
}

// Fault is a finding of [SeverityError] that keeps a service from working:
// trying again does not mend it.
type Fault struct {
	Finding
	// Err is the server's own answer, nil when no server took offence.
	Err error
}

func (f *Fault) Error() string {
	if f.Err == nil {
		return f.String()
	}
	return fmt.Sprintf("%s: %v", f.Finding, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// FindingsOf turns an error into findings: one for each fault that it joins or
// wraps, and where there is none, one about the subject.
func FindingsOf(subject string, err error) []Finding {
	fault, ok := errors.AsType[*Fault](err)
	if !ok {
		return []Finding{{Severity: SeverityError, Subject: subject, Problem: err.Error()}}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var findings []Finding
		for _, part := range joined.Unwrap() {
			findings = append(findings, FindingsOf(subject, part)...)
		}
		return findings
	}
	f := fault.Finding
	if fault.Err != nil {
		f.Problem = fmt.Sprintf("%s (%v)", f.Problem, fault.Err)
	}
	return []Finding{f}
}
