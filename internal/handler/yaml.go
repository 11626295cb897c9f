package handler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	yamltoken "github.com/goccy/go-yaml/token"
)

// entry is a key of a YAML mapping and its value.
type entry struct {
	key   string
	at    place
	value ast.Node
}

// reader walks a handlers file and collects its faults.
type reader struct {
	source *source
	faults []error
}

func (r *reader) fault(at place, problem, remedy string) {
	r.faults = append(r.faults, r.source.fault(at, problem, remedy))
}

// body parses the file and returns its only document, nil for a faulty one.
func (r *reader) body(data []byte) ast.Node {
	if !utf8.Valid(data) {
		r.fault(invalidUTF8(data), "not UTF-8", "save the file in UTF-8")
		return nil
	}
	// Duplicate keys are left to entries, which reports them with all else.
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := place{1, 1}, err.Error()
		if syntax := (*yaml.SyntaxError)(nil); errors.As(err, &syntax) {
			at, message = placeOf(syntax.Token), syntax.Message
		}
		r.fault(at, "not YAML: "+message, "correct the syntax, mind the indentation")
		return nil
	}
	docs := slices.DeleteFunc(file.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil })
	switch len(docs) {
	case 0:
		r.fault(place{1, 1}, "empty file", "begin it with handlers: and map each biz_type to its lock and sql")
		return nil
	case 1:
		return docs[0].Body
	default:
		r.fault(placeOf(docs[1].Start), "second document", "keep all handlers in one, without ---")
		return nil
	}
}

// entries returns the entries of a mapping. What names the mapping in faults,
// which stand at its owner unless the mapping itself has a place.
func (r *reader) entries(n ast.Node, what string, owner place) []entry {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.fault(owner, fmt.Sprintf("%s is %s", what, describe(n)), "make it a mapping, lines of key: value")
		return nil
	}
	if len(m.Values) == 0 {
		r.fault(owner, what+" is empty", "fill it in")
	}
	var entries []entry
	for _, v := range m.Values {
		e := entry{at: placeOf(v.Key.GetToken()), value: v.Value}
		key, ok := v.Key.(*ast.StringNode)
		if !ok || strings.ContainsRune(key.Value, 0) {
			r.fault(e.at, fmt.Sprintf("key %s of %s is not plain text", v.Key.GetToken().Value, what), "put it in quotes; merge keys are not supported")
			continue
		}
		e.key = key.Value
		if i := slices.IndexFunc(entries, func(o entry) bool { return o.key == e.key }); i >= 0 {
			r.fault(e.at, fmt.Sprintf("%s has %q twice, first on line %d", what, e.key, entries[i].at.line), "keep one of them")
			continue
		}
		entries = append(entries, e)
	}
	return entries
}

// text returns a value that must be a non-empty string.
func (r *reader) text(e entry, what string) (text, bool) {
	t := text{start: e.at}
	switch n := e.value.(type) {
	case *ast.StringNode:
		t = text{value: n.Value, start: placeOf(n.GetToken())}
	case *ast.LiteralNode:
		t = text{value: n.Value.Value, start: placeOf(n.Start), block: true}
	case *ast.NullNode:
	default:
		r.fault(placeOf(n.GetToken()), fmt.Sprintf("%s is %s", what, describe(n)), "make it text, in quotes if need be")
		return t, false
	}
	switch {
	case strings.TrimSpace(t.value) == "":
		r.fault(t.start, what+" is empty", "fill it in or remove the line")
	case strings.ContainsRune(t.value, 0):
		r.fault(t.start, what+" contains a NUL character", "remove it, PostgreSQL takes none")
	default:
		return t, true
	}
	return t, false
}

// describe says what a node is, for faults.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.NullNode:
		return "empty"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	default:
		return "an anchor, alias or tag, which are not supported"
	}
}

func placeOf(t *yamltoken.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{line: t.Position.Line, column: max(t.Position.Column, 1)}
}

// invalidUTF8 is the place of the first byte that is not UTF-8.
func invalidUTF8(data []byte) place {
	at := place{1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if at.column++; r == '\n' {
			at = place{at.line + 1, 1}
		}
		data = data[size:]
	}
	return at
}
