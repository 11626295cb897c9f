package handler

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// target is the column that says which row a task is about.
type target struct {
	schema, table, key string
}

// parseTarget reads schema.table(key). Names are folded to lower case unless
// they are quoted, as in SQL.
func parseTarget(s string) (target, bool) {
	tokens, unclosed := lex(s)
	if unclosed != nil || len(tokens) != 6 ||
		tokens[1].text != "." || tokens[3].text != "(" || tokens[5].text != ")" {
		return target{}, false
	}
	t := target{schema: identifier(tokens[0]), table: identifier(tokens[2]), key: identifier(tokens[4])}
	return t, t.schema != "" && t.table != "" && t.key != ""
}

// identifier returns the name that a token stands for, "" if it is none.
// PostgreSQL cuts names behind 63 bytes; a longer one names nothing.
func identifier(t token) string {
	var name string
	switch t.kind {
	case word:
		name = strings.Map(asciiLower, t.text)
	case quoted:
		name = strings.ReplaceAll(t.text[1:len(t.text)-1], `""`, `"`)
	default:
		return ""
	}
	if len(name) > 63 {
		return ""
	}
	return name
}

// asciiLower folds as PostgreSQL does under UTF-8: letters beyond ASCII stay.
func asciiLower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + ('a' - 'A')
	}
	return r
}

// String is the target as an operator writes it.
func (t target) String() string { return t.tableName() + "(" + t.key + ")" }

func (t target) tableName() string { return t.schema + "." + t.table }

// quoted is the target's table and column as SQL.
func (t target) quoted() (table, key string) {
	return pgx.Identifier{t.schema, t.table}.Sanitize(), pgx.Identifier{t.key}.Sanitize()
}
