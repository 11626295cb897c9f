package handler

import (
	"slices"
	"strings"
)

// flaw is something wrong at a byte of a statement.
type flaw struct {
	at              int
	problem, remedy string
}

// inspect finds what is wrong with a statement's text alone.
func inspect(sql string) []flaw {
	tokens, open := lex(sql)
	switch {
	case open != nil:
		return []flaw{{open.at, open.what + " without an end", "close it"}}
	case len(tokens) == 0:
		return []flaw{{0, "no statement", `write the SQL that acts on the ids in $1 and returns those it acted on`}}
	}
	flaws := wrongKind(tokens)
	flaws = append(flaws, secondStatement(tokens)...)
	flaws = append(flaws, wrongParams(tokens)...)
	return append(flaws, skipLocked(tokens)...)
}

// wrongKind refuses what is not a query, above all COMMIT and its kind: the
// transaction is not the statement's to end.
func wrongKind(tokens []token) []flaw {
	first := tokens[0]
	for _, t := range tokens {
		if first = t; t.text != "(" {
			break
		}
	}
	queries := []string{"select", "with", "update", "delete", "insert", "merge", "values"}
	if slices.ContainsFunc(queries, first.is) {
		return nil
	}
	return []flaw{{
		first.at, "statement begins with " + first.text,
		"use one SELECT, UPDATE, DELETE, INSERT, MERGE or VALUES, with or without WITH",
	}}
}

func secondStatement(tokens []token) []flaw {
	ended := false
	for _, t := range tokens {
		if t.text == ";" {
			ended = true
		} else if ended {
			return []flaw{{
				t.at, "second statement",
				"write one statement; several effects go into one as WITH a AS (UPDATE … RETURNING …), b AS (…) SELECT …",
			}}
		}
	}
	return nil
}

func wrongParams(tokens []token) []flaw {
	var flaws []flaw
	used := false
	for _, t := range tokens {
		if t.kind != param {
			continue
		}
		switch strings.TrimLeft(t.text[1:], "0") {
		case "1":
			used = true
		case "2":
		default:
			flaws = append(flaws, flaw{
				t.at, "no parameter " + t.text,
				"there are $1, the array of ids, and $2, the jsonb[] of payloads in the same order",
			})
		}
	}
	if !used {
		flaws = append(flaws, flaw{
			tokens[0].at, "statement does not use $1, the array of ids",
			"restrict it to them, for example WHERE id = ANY ($1)",
		})
	}
	return flaws
}

func skipLocked(tokens []token) []flaw {
	var flaws []flaw
	for i := 1; i < len(tokens); i++ {
		if tokens[i-1].is("skip") && tokens[i].is("locked") {
			flaws = append(flaws, flaw{
				tokens[i-1].at, "SKIP LOCKED passes over held rows without a word, and their tasks would be lost as skipped",
				"name the row in lock: and Bide tries held rows again, or leave SKIP LOCKED out",
			})
		}
	}
	return flaws
}
