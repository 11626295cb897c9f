package handler_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/handler"
)

const sound = `# What the shop does when a task is due.
handlers:
  close_order: # after 30 minutes
    lock: shop.orders(id)
    sql: |
      UPDATE shop.orders SET status = 'CLOSED' -- ; SKIP LOCKED $3
      WHERE id = ANY ($1) AND status = 'UNPAID' RETURNING id;
  "remind customer":
    lock: '"Shop"."Orders"("Id")'
    sql: SELECT id, 'done' FROM unnest($1, $2) AS t (id, payload)
    batch: 1000
  alone:
    sql: >-
      ((WITH x AS (SELECT 1) SELECT
      $1))
    batch: 1
`

func TestParse(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"LF": sound, "CRLF": strings.ReplaceAll(sound, "\n", "\r\n")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := handler.Parse("h.yaml", []byte(file))
			require.NoError(t, err)
			batches := map[string]int{}
			for name, h := range set.Handlers() {
				batches[name] = h.Batch()
			}
			require.Equal(t, map[string]int{"close_order": 200, "remind customer": 1000, "alone": 1}, batches)
		})
	}
}

func TestParseNamesEveryFault(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 513)
	tests := []struct {
		name string
		file string
		want []string
	}{
		{"empty", "", []string{"1:1: empty file; begin it with handlers: and map each biz_type to its lock and sql"}},
		{"comment only", "# later\n", []string{"1:1: empty file; begin it with handlers: and map each biz_type to its lock and sql"}},
		{"not UTF-8", "handlers:\n  é\xff: 1\n", []string{"2:4: not UTF-8; save the file in UTF-8"}},
		{"syntax", "handlers:\n\tx: 1\n", []string{"2:1: not YAML: found character '\t' that cannot start any token; correct the syntax, mind the indentation"}},
		{"indentation", "handlers:\n  a:\n    sql: SELECT $1\n   batch: 1\n", []string{"4:4: not YAML: value is not allowed in this context; correct the syntax, mind the indentation"}},
		{"two documents", "handlers:\n  a: {sql: SELECT $1}\n---\nhandlers: {}\n", []string{"3:1: second document; keep all handlers in one, without ---"}},
		{"a list", "- handlers\n", []string{"1:1: the file is a list; make it a mapping, lines of key: value"}},
		{"text", "close_order\n", []string{"1:1: the file is text; make it a mapping, lines of key: value"}},
		{"an empty mapping", "{}\n", []string{"1:1: the file is empty; fill it in"}},
		{"no handlers", "handlers:\n", []string{"1:1: handlers is empty; make it a mapping, lines of key: value"}},
		{"no handlers in braces", "handlers: {}\n", []string{"1:1: handlers is empty; fill it in"}},
		{"other top-level key", "handler:\n  a: {sql: SELECT $1}\n", []string{`1:1: unknown key "handler"; the file has one key, handlers`}},
		{"handler without anything", "handlers:\n  a:\n  b: 5\n  c: [x]\n", []string{
			`2:3: handler "a" is empty; make it a mapping, lines of key: value`,
			`3:3: handler "b" is a number; make it a mapping, lines of key: value`,
			`4:3: handler "c" is a list; make it a mapping, lines of key: value`,
		}},
		{"biz_type that is no text", "handlers:\n  5: {sql: SELECT $1}\n  ~: {}\n  true: {}\n  <<: {}\n  ? a\n  : {}\n", []string{
			"2:3: key 5 of handlers is not plain text; put it in quotes; merge keys are not supported",
			"3:3: key ~ of handlers is not plain text; put it in quotes; merge keys are not supported",
			"4:3: key true of handlers is not plain text; put it in quotes; merge keys are not supported",
			"5:3: key << of handlers is not plain text; put it in quotes; merge keys are not supported",
			"6:3: key ? of handlers is not plain text; put it in quotes; merge keys are not supported",
		}},
		{"empty biz_type", "handlers:\n  '': {sql: SELECT $1}\n", []string{"2:3: empty biz_type; name the tasks' biz_type"}},
		{"long biz_type", "handlers:\n  " + long + ": {sql: SELECT $1}\n", []string{"2:3: biz_type of 513 bytes; the ledger takes at most 512"}},
		{"biz_type twice", "handlers:\n  a: {sql: SELECT $1}\n  b: {sql: SELECT $1}\n  a: {sql: SELECT $1}\n", []string{
			`4:3: handlers has "a" twice, first on line 2; keep one of them`,
		}},
		{"unknown key", "handlers:\n  a:\n    sql: SELECT $1\n    lok: s.t(k)\n", []string{`4:5: unknown key "lok" in handler "a"; known are lock, sql and batch`}},
		{"key twice", "handlers:\n  a:\n    sql: SELECT $1\n    sql: SELECT $1\n", []string{`4:5: handler "a" has "sql" twice, first on line 3; keep one of them`}},
		{"no sql", "handlers:\n  a:\n    lock: s.t(k)\n", []string{`2:3: handler "a" has no sql; add sql: with the statement that acts on the ids in $1`}},
		{"empty sql", "handlers:\n  a:\n    sql:\n  b:\n    sql: ' '\n", []string{
			"3:5: sql is empty; fill it in or remove the line",
			"5:10: sql is empty; fill it in or remove the line",
		}},
		{"sql that is no text", "handlers:\n  a:\n    sql: 5\n  b:\n    sql: [SELECT]\n", []string{
			"3:10: sql is a number; make it text, in quotes if need be",
			"5:10: sql is a list; make it text, in quotes if need be",
		}},
		{"NUL", "handlers:\n  a:\n    sql: \"SELECT $1\\0\"\n", []string{"3:10: sql contains a NUL character; remove it, PostgreSQL takes none"}},
		{"anchor and alias", "handlers:\n  a:\n    sql: &x SELECT $1\n  b:\n    sql: *x\n  c: !!str d\n", []string{
			"3:10: sql is an anchor, alias or tag, which are not supported; make it text, in quotes if need be",
			"5:10: sql is an anchor, alias or tag, which are not supported; make it text, in quotes if need be",
			`6:3: handler "c" is an anchor, alias or tag, which are not supported; make it a mapping, lines of key: value`,
		}},
		{"lock without a key", "handlers:\n  a:\n    lock: shop.orders\n    sql: SELECT $1\n", []string{
			`3:11: lock "shop.orders" is not of the form schema.table(key); write for example shop.orders(id), or '"Shop"."Orders"("Id")' for names with capitals`,
		}},
		{"empty lock", "handlers:\n  a:\n    lock:\n    sql: SELECT $1\n", []string{"3:5: lock is empty; fill it in or remove the line"}},
		{"batch that is no number", "handlers:\n  a:\n    sql: SELECT $1\n    batch: many\n", []string{"4:12: batch is text; make it a number from 1 to 1000"}},
		{"batch out of range", "handlers:\n  a:\n    lock: s.t(k)\n    sql: SELECT $1\n    batch: 1001\n  b:\n    sql: SELECT $1\n    batch: 0\n  c:\n    sql: SELECT $1\n    batch: 99999999999999999999\n", []string{
			"5:12: batch is 1001; make it a number from 1 to 1000",
			"8:12: batch is 0; make it a number from 1 to 1000",
			"11:12: batch is text; make it a number from 1 to 1000",
		}},
		{"batch without lock", "handlers:\n  a:\n    sql: SELECT $1\n    batch: 2\n", []string{
			"4:12: batch is 2 without a lock; name the rows to lock, or leave batch out: without lock each task runs alone",
		}},
		{"nothing but comments", "handlers:\n  a:\n    sql: |\n      -- later\n", []string{
			"4:7: no statement; write the SQL that acts on the ids in $1 and returns those it acted on",
		}},
		{"unclosed string", "handlers:\n  a:\n    sql: |\n      SELECT $1,\n        'x\n", []string{"5:9: string without an end; close it"}},
		{"not a query", "handlers:\n  a:\n    sql: COMMIT\n", []string{
			"3:10: statement begins with COMMIT; use one SELECT, UPDATE, DELETE, INSERT, MERGE or VALUES, with or without WITH",
			"3:10: statement does not use $1, the array of ids; restrict it to them, for example WHERE id = ANY ($1)",
		}},
		{"two statements", "handlers:\n  a:\n    sql: |\n      SELECT $1;\n\n      -- and\n      ; COMMIT;\n", []string{
			"7:9: second statement; write one statement; several effects go into one as WITH a AS (UPDATE … RETURNING …), b AS (…) SELECT …",
		}},
		{"wrong parameters", "handlers:\n  a:\n    sql: |\n\n      SELECT 'é' || $3,\n      $0, $02, $$ $1 $$, '$1' -- $1\n", []string{
			"5:21: no parameter $3; there are $1, the array of ids, and $2, the jsonb[] of payloads in the same order",
			"6:7: no parameter $0; there are $1, the array of ids, and $2, the jsonb[] of payloads in the same order",
			"5:7: statement does not use $1, the array of ids; restrict it to them, for example WHERE id = ANY ($1)",
		}},
		{"skip locked", "handlers:\n  a:\n    lock: s.t(k)\n    sql: |-\n      SELECT id FROM o WHERE id = ANY ($1)\n        FOR UPDATE SKIP\n        LOCKED\n  b:\n    sql: 'SELECT id FROM o WHERE id = $1 FOR UPDATE SKIP LOCKED'\n", []string{
			"6:20: SKIP LOCKED passes over held rows without a word, and their tasks would be lost as skipped; name the row in lock: and Bide tries held rows again, or leave SKIP LOCKED out",
			"9:53: SKIP LOCKED passes over held rows without a word, and their tasks would be lost as skipped; name the row in lock: and Bide tries held rows again, or leave SKIP LOCKED out",
		}},
		{"folded text has no lines of its own", "handlers:\n  a:\n    sql: >\n      SELECT\n      $3, $1\n", []string{
			"3:10: no parameter $3; there are $1, the array of ids, and $2, the jsonb[] of payloads in the same order",
		}},
		{"all at once", "handler: x\nhandlers:\n  a:\n    batch: -1\n    sql: SELECT\n    lock: x\n    retries: 3\n", []string{
			`1:1: unknown key "handler"; the file has one key, handlers`,
			`7:5: unknown key "retries" in handler "a"; known are lock, sql and batch`,
			`6:11: lock "x" is not of the form schema.table(key); write for example shop.orders(id), or '"Shop"."Orders"("Id")' for names with capitals`,
			"4:12: batch is -1; make it a number from 1 to 1000",
			"5:10: statement does not use $1, the array of ids; restrict it to them, for example WHERE id = ANY ($1)",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			set, err := handler.Parse("h.yaml", []byte(tt.file))
			require.Nil(t, set)
			var want []string
			for _, w := range tt.want {
				want = append(want, "h.yaml:"+w)
			}
			require.EqualError(t, err, strings.Join(want, "\n"))
		})
	}
}

func TestAFaultSaysWhere(t *testing.T) {
	t.Parallel()
	_, err := handler.Parse("h.yaml", []byte("handlers:\n  a:\n    sql: |\n      COMMIT\n"))
	var fault *bide.Fault
	require.ErrorAs(t, err, &fault)
	require.Equal(t, bide.SeverityError, fault.Severity)
	require.Equal(t, "h.yaml:4:7", fault.Subject)
	require.Equal(t, "statement begins with COMMIT", fault.Problem)
	require.NotEmpty(t, fault.Remedy)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	_, err := handler.Load(path)
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.WriteFile(path, []byte(sound), 0o600))
	set, err := handler.Load(path)
	require.NoError(t, err)
	require.Len(t, set.Handlers(), 3)

	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	_, err = handler.Load(path)
	require.ErrorContains(t, err, path+":1:1: ")
}

// FuzzParse asks for an answer whatever the file is: handlers, or faults that
// lie within the file.
func FuzzParse(f *testing.F) {
	f.Add(sound)
	for _, seed := range []string{
		"", "handlers:", "handlers: {a: {sql: 'SELECT $1'}}", "a: &b\n  <<: *b", "handlers:\n  a:\n    sql: |2\n        x\n      y\n",
		"handlers:\n  ? [a]\n  : b\n", ">\n>", "&{0", "handlers:\n a:\n  sql: |+\n\n\n", "\r", "\ufeffhandlers: 1", "{{", "a: |\r\n  b\r\n", "- - -", "!!",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		set, err := handler.Parse("h.yaml", []byte(file))
		if err == nil {
			require.NotEmpty(t, set.Handlers())
			return
		}
		joined, ok := err.(interface{ Unwrap() []error })
		require.True(t, ok)
		for _, e := range joined.Unwrap() {
			var fault *bide.Fault
			require.ErrorAs(t, e, &fault)
			var line, column int
			_, err := fmt.Sscanf(fault.Subject, "h.yaml:%d:%d", &line, &column)
			require.NoError(t, err)
			require.Positive(t, line)
			require.Positive(t, column)
			require.LessOrEqual(t, line, strings.Count(file, "\n")+strings.Count(file, "\r")+2)
		}
	})
}
