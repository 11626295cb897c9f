package handler

import (
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// maxBizType is the ledger's bound on a biz_type, in bytes.
const maxBizType = 512

// defaultBatch is the batch of a handler that locks its rows.
const defaultBatch = 200

// read turns the file into handlers. They are usable only if it leaves no
// fault behind.
func (r *reader) read(data []byte) []*statement {
	body := r.body(data)
	if body == nil {
		return nil
	}
	var handlers []*statement
	for _, e := range r.entries(body, "the file", place{1, 1}) {
		if e.key != "handlers" {
			r.fault(e.at, fmt.Sprintf("unknown key %q", e.key), "the file has one key, handlers")
			continue
		}
		for _, h := range r.entries(e.value, "handlers", e.at) {
			handlers = append(handlers, r.handler(h))
		}
	}
	return handlers
}

func (r *reader) handler(e entry) *statement {
	switch {
	case e.key == "":
		r.fault(e.at, "empty biz_type", "name the tasks' biz_type")
	case len(e.key) > maxBizType:
		r.fault(e.at, fmt.Sprintf("biz_type of %d bytes", len(e.key)), fmt.Sprintf("the ledger takes at most %d", maxBizType))
	}
	h := &statement{bizType: e.key, source: r.source, start: e.at, batch: 1}
	what := "handler " + strconv.Quote(e.key)
	fields := map[string]entry{}
	for _, f := range r.entries(e.value, what, e.at) {
		switch f.key {
		case "lock", "sql", "batch":
			fields[f.key] = f
		default:
			r.fault(f.at, fmt.Sprintf("unknown key %q in %s", f.key, what), "known are lock, sql and batch")
		}
	}
	if f, ok := fields["lock"]; ok {
		h.batch = defaultBatch
		r.lock(h, f)
	}
	if f, ok := fields["batch"]; ok {
		r.batch(h, f)
	}
	if f, ok := fields["sql"]; ok {
		r.sql(h, f)
	} else if len(fields) > 0 {
		r.fault(e.at, what+" has no sql", "add sql: with the statement that acts on the ids in $1")
	}
	return h
}

func (r *reader) lock(h *statement, f entry) {
	h.target = &target{}
	t, ok := r.text(f, "lock")
	if !ok {
		return
	}
	h.lockAt = t.start
	if *h.target, ok = parseTarget(t.value); !ok {
		r.fault(t.start, fmt.Sprintf("lock %q is not of the form schema.table(key)", t.value),
			`write for example shop.orders(id), or '"Shop"."Orders"("Id")' for names with capitals`)
	}
}

func (r *reader) batch(h *statement, f entry) {
	at := placeOf(f.value.GetToken())
	n, ok := f.value.(*ast.IntegerNode)
	if !ok {
		r.fault(at, "batch is "+describe(f.value), fmt.Sprintf("make it a number from 1 to %d", MaxBatch))
		return
	}
	size, err := strconv.Atoi(fmt.Sprint(n.Value))
	switch {
	case err != nil || size < 1 || size > MaxBatch:
		r.fault(at, fmt.Sprintf("batch is %v", n.Value), fmt.Sprintf("make it a number from 1 to %d", MaxBatch))
	case h.target == nil && size > 1:
		r.fault(at, fmt.Sprintf("batch is %d without a lock", size),
			"name the rows to lock, or leave batch out: without lock each task runs alone")
	default:
		h.batch = size
	}
}

func (r *reader) sql(h *statement, f entry) {
	t, ok := r.text(f, "sql")
	if !ok {
		return
	}
	h.query = t
	for _, flaw := range inspect(t.value) {
		r.fault(r.source.locate(t, flaw.at), flaw.problem, flaw.remedy)
	}
}
