package handler

import (
	"errors"
	"fmt"
	"os"
)

// Set is the handlers of a file, in its order. The zero Set has none.
type Set struct {
	source   *source
	handlers []*statement
}

// Load reads and checks a handlers file, see [Parse].
func Load(path string) (*Set, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read handlers file: %w", err)
	}
	return Parse(path, data)
}

// Parse reads and checks the text of a handlers file; name is what faults call
// the file. The error joins a [*bide.Fault] for everything that is wrong. Call
// [Set.Prepare] before the handlers are used.
func Parse(name string, data []byte) (*Set, error) {
	r := reader{source: newSource(name, data)}
	handlers := r.read(data)
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	return &Set{source: r.source, handlers: handlers}, nil
}

// Handlers returns the handlers by biz_type.
func (s *Set) Handlers() map[string]Handler {
	m := make(map[string]Handler, len(s.handlers))
	for _, h := range s.handlers {
		m[h.bizType] = h
	}
	return m
}
