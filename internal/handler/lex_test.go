package handler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLexFindsSkipLockedOnlyWhereItIsSQL(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		sql  string
		want bool
	}{
		{"plain", "FOR UPDATE SKIP LOCKED", true},
		{"any case, any space", "for update skip\n\t loCked", true},
		{"comment between", "FOR UPDATE SKIP /* all */ -- of them\n LOCKED", true},
		{"behind a comment", "/* x */SKIP LOCKED", true},
		{"behind a nested comment", "/* /* */ */ SKIP LOCKED", true},
		{"in a comment", "/* SKIP LOCKED */ SELECT 1", false},
		{"in a nested comment", "/* /* */ SKIP LOCKED */", false},
		{"in a line comment", "SELECT 1 -- SKIP LOCKED", false},
		{"after a line comment", "-- x\nSKIP LOCKED", true},
		{"after a line comment ended by CR", "-- x\rSKIP LOCKED", true},
		{"in a string", "SELECT 'SKIP LOCKED'", false},
		{"in a string with a quote", "SELECT 'it''s SKIP LOCKED'", false},
		{"after a string", "'a' SKIP LOCKED", true},
		{"after a string that ends in a backslash", `'\' SKIP LOCKED --'`, true},
		{"in an escape string", `E'\' SKIP LOCKED'`, false},
		{"after an escape string", `e'\'' SKIP LOCKED`, true},
		{"in a string that goes on", "E'a'\n 'b\\' SKIP LOCKED'", false},
		{"in a string that goes on after a comment", "E'a' -- x\n'b\\' SKIP LOCKED'", false},
		{"a string on the same line does not go on", `E'a' '\' SKIP LOCKED --'`, true},
		{"in a national string", "N'SKIP LOCKED'", false},
		{"the letter e ends a word", `type'\' SKIP LOCKED --'`, true},
		{"in a unicode string", "U&'SKIP LOCKED'", false},
		{"in a quoted identifier", `SELECT "SKIP LOCKED"`, false},
		{"in a quoted identifier with a quote", `SELECT "a"" SKIP LOCKED"`, false},
		{"as quoted identifiers", `SELECT "skip" "locked"`, false},
		{"in dollar quotes", "SELECT $$SKIP LOCKED$$", false},
		{"in tagged dollar quotes", "SELECT $a$ $$ SKIP LOCKED $b$ $a$", false},
		{"after dollar quotes", "$é$ x $é$ SKIP LOCKED", true},
		{"a dollar within an identifier opens nothing", "SELECT a$b$ SKIP LOCKED", true},
		{"after a parameter", "$1 SKIP LOCKED", true},
		{"parameters are no dollar quotes", "$1$ SKIP LOCKED $1$", true},
		{"as part of words", "SELECT skip_locked, skip lockeds, noskip locked", false},
		{"apart", "SELECT skip, locked", false},
		{"as alias", "SELECT skip AS locked", false},
		{"next to operators", "1 */* x */SKIP LOCKED", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tokens, open := lex(tt.sql)
			require.Nil(t, open)
			require.Equal(t, tt.want, len(skipLocked(tokens)) > 0)
		})
	}
}

func TestLexTellsWhatIsUnclosed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		sql  string
		want unclosed
	}{
		{"a /* /* */", unclosed{"comment", 2}},
		{"a 'b", unclosed{"string", 2}},
		{"a 'b''", unclosed{"string", 2}},
		{`a E'b\`, unclosed{"string", 2}},
		{`a E'b\'`, unclosed{"string", 2}},
		{"a 'b'\n'", unclosed{"string", 2}},
		{`a "b`, unclosed{"quoted identifier", 2}},
		{`a "b""`, unclosed{"quoted identifier", 2}},
		{"a $x$ b $x", unclosed{"dollar-quoted string", 2}},
		{"a $$", unclosed{"dollar-quoted string", 2}},
	}
	for _, tt := range tests {
		t.Run(tt.sql, func(t *testing.T) {
			t.Parallel()
			_, open := lex(tt.sql)
			require.NotNil(t, open)
			require.Equal(t, tt.want, *open)
		})
	}
}

// TestLexSkipsWhatIsNotSQL builds statements of pieces whose nature is known.
func TestLexSkipsWhatIsNotSQL(t *testing.T) {
	t.Parallel()
	hidden := []string{
		"/* SKIP LOCKED */", "/*/**/ SKIP LOCKED */", "-- SKIP LOCKED\n", "'SKIP LOCKED'", "''''", `'\'`,
		`E'\'SKIP LOCKED'`, `"SKIP LOCKED"`, `""""`, "$$SKIP LOCKED$$", "$x$ $$ ' \" SKIP LOCKED $x$", "U&'SKIP LOCKED'",
	}
	shown := []string{"SELECT", "id", "=", "ANY", "(", ")", "$1", "1.5e3", "-", "*", "a$b", "é", ";", "||"}
	const skip = "SKIP LOCKED"
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom(append(append([]string{skip}, hidden...), shown...))).Draw(t, "pieces")
		// Blanks keep the pieces apart; a word between keeps two strings from
		// becoming one.
		tokens, open := lex(strings.Join(pieces, " x "))
		require.Nil(t, open)
		want := 0
		for _, p := range pieces {
			if p == skip {
				want++
			}
		}
		require.Len(t, skipLocked(tokens), want)
	})
}

func FuzzLex(f *testing.F) {
	for _, seed := range []string{
		"SELECT $1", "E'\\", "'a'\n'b'", "$$", "$a$ $a$", "/*/**/*/", `"a""`, "--", "a$1$", "1e5", "\xff$\xff$", "SKIP/**/LOCKED", "-", "$",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		tokens, open := lex(sql)
		end := 0
		for _, tok := range tokens {
			require.NotEmpty(t, tok.text)
			require.GreaterOrEqual(t, tok.at, end)
			end = tok.at + len(tok.text)
			require.Equal(t, sql[tok.at:end], tok.text)
		}
		require.LessOrEqual(t, end, len(sql))
		if open != nil {
			require.GreaterOrEqual(t, open.at, end)
			require.Less(t, open.at, len(sql))
		}
		for _, flaw := range inspect(sql) {
			require.LessOrEqual(t, flaw.at, len(sql))
		}
	})
}
