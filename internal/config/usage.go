package config

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
)

// variable is one setting as --help shows it.
type variable struct {
	name, fallback, text string
}

// variables lists the settings of spec in the order of its fields.
func variables(spec any) []variable {
	var list []variable
	collect(reflect.TypeOf(spec).Elem(), &list)
	return list
}

func collect(t reflect.Type, list *[]variable) {
	for f := range t.Fields() {
		if name, ok := f.Tag.Lookup("envconfig"); ok {
			*list = append(*list, variable{
				name: name, fallback: f.Tag.Get("default"), text: f.Tag.Get("desc"),
			})
			continue
		}
		if f.Type.Kind() == reflect.Struct && f.Anonymous {
			collect(f.Type, list)
		}
	}
}

// known holds the variables of all commands, which may share one environment
// file.
func known() map[string]bool {
	names := map[string]bool{}
	for _, spec := range []any{&Producer{}, &Consumer{}} {
		for _, v := range variables(spec) {
			names[v.name] = true
		}
	}
	return names
}

// Usage writes the settings of spec with their defaults and meaning.
func Usage(out io.Writer, spec any) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, v := range variables(spec) {
		fallback := v.fallback
		if fallback == "" {
			fallback = "-"
		}
		lines := strings.Split(wrap(v.text, 76), "\n")
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\n", v.name, fallback, lines[0])
		for _, line := range lines[1:] {
			_, _ = fmt.Fprintf(w, "  \t\t%s\n", line)
		}
	}
	_ = w.Flush()
}

// wrap breaks text at spaces into lines of at most width characters.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
