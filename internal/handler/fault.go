package handler

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bide-mq/bide"
)

// source is a handlers file, kept to say where things are in it.
type source struct {
	name  string
	lines []string
}

func newSource(name string, data []byte) *source {
	return &source{name: name, lines: strings.Split(string(data), "\n")}
}

// place is a line and a column, both from 1, in characters.
type place struct{ line, column int }

func (s *source) finding(severity bide.Severity, at place, problem, remedy string) bide.Finding {
	subject := fmt.Sprintf("%s:%d:%d", s.name, at.line, at.column)
	return bide.Finding{Severity: severity, Subject: subject, Problem: problem, Remedy: remedy}
}

func (s *source) fault(at place, problem, remedy string) *bide.Fault {
	return &bide.Fault{Finding: s.finding(bide.SeverityError, at, problem, remedy)}
}

func (s *source) advice(at place, problem, remedy string) bide.Finding {
	return s.finding(bide.SeverityWarning, at, problem, remedy)
}

// text is a string value of the file.
type text struct {
	value string
	start place
	// block says that the value is a YAML block scalar (| or >), which begins
	// on the line after start.
	block bool
}

// locate finds the place in the file of a byte of the value. Where YAML has
// folded or unescaped the value, it answers with the value's start.
func (s *source) locate(t text, offset int) place {
	if !t.block {
		return s.locateInline(t, offset)
	}
	begin := strings.LastIndexByte(t.value[:offset], '\n') + 1
	value, _, _ := strings.Cut(t.value[begin:], "\n")
	line := t.start.line + 1 + strings.Count(t.value[:begin], "\n")
	raw := s.line(line)
	if !strings.HasSuffix(raw, value) {
		return t.start
	}
	indent := utf8.RuneCountInString(raw) - utf8.RuneCountInString(value)
	return place{line: line, column: indent + 1 + utf8.RuneCountInString(t.value[begin:offset])}
}

func (s *source) locateInline(t text, offset int) place {
	raw := []rune(s.line(t.start.line))
	column := t.start.column
	if column <= len(raw) && (raw[column-1] == '\'' || raw[column-1] == '"') {
		column++
	}
	if column > len(raw) || !strings.HasPrefix(string(raw[column-1:]), t.value) {
		return t.start
	}
	return place{line: t.start.line, column: column + utf8.RuneCountInString(t.value[:offset])}
}

// line returns a line of the file, counted from 1, without its ending.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return strings.TrimSuffix(s.lines[n-1], "\r")
}
