package handler

import "strings"

// tokenKind tells the few kinds of SQL token apart that a check of a
// statement's text needs.
type tokenKind uint8

const (
	blank   tokenKind = iota // white space or a comment, never a token
	punct                    // one byte of an operator or of punctuation
	word                     // a keyword or an unquoted identifier
	quoted                   // a "quoted identifier"
	literal                  // a string in any notation, or a number
	param                    // $1
)

// token is a piece of SQL.
type token struct {
	kind tokenKind
	text string
	at   int // byte offset in the statement
}

// is reports whether the token is the keyword, given in lower case.
func (t token) is(keyword string) bool {
	return t.kind == word && strings.EqualFold(t.text, keyword)
}

// unclosed is a comment, string or identifier that does not end.
type unclosed struct {
	what string
	at   int
}

// lex splits SQL as PostgreSQL does (its manual, "Lexical Structure"), with
// standard_conforming_strings on. It gives up at what is unclosed.
func lex(sql string) ([]token, *unclosed) {
	l := lexer{sql: sql}
	for l.pos < len(l.sql) {
		start := l.pos
		kind, what := l.next()
		if what != "" {
			return l.tokens, &unclosed{what: what, at: start}
		}
		if kind != blank {
			l.tokens = append(l.tokens, token{kind: kind, text: sql[start:l.pos], at: start})
		}
	}
	return l.tokens, nil
}

type lexer struct {
	sql    string
	pos    int
	tokens []token
}

// peek returns the byte i after the position, 0 behind the end.
func (l *lexer) peek(i int) byte {
	if l.pos+i >= len(l.sql) {
		return 0
	}
	return l.sql[l.pos+i]
}

// next moves behind the next piece. Where that piece does not end, it names it.
func (l *lexer) next() (kind tokenKind, unclosed string) {
	switch c := l.peek(0); {
	case isSpace(c):
		l.pos++
		return blank, ""
	case c == '-' && l.peek(1) == '-':
		l.lineComment()
		return blank, ""
	case c == '/' && l.peek(1) == '*':
		return blank, l.blockComment()
	case c == '\'':
		return literal, l.str(false)
	case (c == 'e' || c == 'E') && l.peek(1) == '\'':
		l.pos++
		return literal, l.str(true)
	case c == '"':
		return quoted, l.quotedIdent()
	case c == '$':
		return l.dollar()
	case isDigit(c):
		l.while(isNumberPart)
		return literal, ""
	case isIdentStart(c):
		l.while(isIdentPart)
		return word, ""
	default:
		l.pos++
		return punct, ""
	}
}

func (l *lexer) while(in func(byte) bool) {
	for l.pos < len(l.sql) && in(l.sql[l.pos]) {
		l.pos++
	}
}

func (l *lexer) lineComment() {
	l.while(func(c byte) bool { return c != '\n' && c != '\r' })
}

// blockComment skips a comment, which may hold others.
func (l *lexer) blockComment() (unclosed string) {
	depth := 0
	for l.pos < len(l.sql) {
		switch {
		case l.peek(0) == '/' && l.peek(1) == '*':
			depth++
			l.pos += 2
		case l.peek(0) == '*' && l.peek(1) == '/':
			depth--
			l.pos += 2
		default:
			l.pos++
		}
		if depth == 0 {
			return ""
		}
	}
	return "comment"
}

// str skips a string from its opening quote. Strings that only white space
// with a line break separates are one string: the notation of the first, here
// escapes, holds for all.
func (l *lexer) str(escapes bool) (unclosed string) {
	for l.pos++; l.pos < len(l.sql); l.pos++ {
		switch c := l.peek(0); {
		case c == '\\' && escapes:
			l.pos++
		case c == '\'' && l.peek(1) == '\'':
			l.pos++
		case c == '\'':
			l.pos++
			if !l.continued() {
				return ""
			}
		}
	}
	l.pos = len(l.sql)
	return "string"
}

// continued moves to the opening quote of a string's continuation, or stays
// where it is if there is none.
func (l *lexer) continued() bool {
	end, newline := l.pos, false
	for isSpace(l.peek(0)) || l.peek(0) == '-' && l.peek(1) == '-' {
		if l.peek(0) == '-' {
			l.lineComment()
			continue
		}
		newline = newline || l.peek(0) == '\n' || l.peek(0) == '\r'
		l.pos++
	}
	if newline && l.peek(0) == '\'' {
		return true
	}
	l.pos = end
	return false
}

func (l *lexer) quotedIdent() (unclosed string) {
	for l.pos++; l.pos < len(l.sql); l.pos++ {
		if l.peek(0) != '"' {
			continue
		}
		l.pos++
		if l.peek(0) != '"' {
			return ""
		}
	}
	return "quoted identifier"
}

// dollar reads a parameter, a dollar-quoted string, or a lone dollar sign.
func (l *lexer) dollar() (kind tokenKind, unclosed string) {
	start := l.pos
	l.pos++
	if isDigit(l.peek(0)) {
		l.while(isDigit)
		return param, ""
	}
	if isIdentStart(l.peek(0)) {
		l.while(func(c byte) bool { return isIdentPart(c) && c != '$' })
	}
	if l.peek(0) != '$' {
		l.pos = start + 1
		return punct, ""
	}
	l.pos++
	tag := l.sql[start:l.pos]
	end := strings.Index(l.sql[l.pos:], tag)
	if end < 0 {
		l.pos = len(l.sql)
		return literal, "dollar-quoted string"
	}
	l.pos += end + len(tag)
	return literal, ""
}

func isSpace(c byte) bool { return strings.IndexByte(" \t\n\r\f\v", c) >= 0 }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isIdentStart takes every byte of a character beyond ASCII, as PostgreSQL does.
func isIdentStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isIdentPart(c byte) bool { return isIdentStart(c) || isDigit(c) || c == '$' }

func isNumberPart(c byte) bool { return isIdentStart(c) || isDigit(c) || c == '.' }
