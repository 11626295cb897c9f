package handler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

func (h *statement) lockFault(problem, remedy string) error {
	return h.source.fault(h.lockAt, problem, remedy)
}

// blame turns PostgreSQL's refusal of the statement into a fault at the place
// it points to. Offset is what stood before the statement in the text sent.
func (h *statement) blame(err error, offset int, p *plan) error {
	pg := refusal(err)
	if pg == nil {
		return err
	}
	at := h.query.start
	if n := int(pg.Position) - 1 - offset; n >= 0 {
		at = h.source.locate(h.query, byteOffset(h.query.value, n))
	}
	problem := fmt.Sprintf("PostgreSQL refuses the statement: %s (SQLSTATE %s)", pg.Message, pg.Code)
	if pg.Detail != "" {
		problem += ", " + pg.Detail
	}
	remedy := fmt.Sprintf("try it in psql: PREPARE t (%s, jsonb[]) AS …", p.ids.name)
	if pg.Code == insufficientPrivilege {
		remedy = "grant the consumer's role what the statement needs"
	}
	return h.source.fault(at, problem, cmp.Or(pg.Hint, remedy))
}

// insufficientPrivilege is the SQLSTATE of a missing GRANT.
const insufficientPrivilege = "42501"

// refusal returns the error of a statement that PostgreSQL does not take, nil
// for any other, such as a lost connection, a time-out or a full disk. The
// classes are those of the manual's appendix "PostgreSQL Error Codes" that
// speak of the server's or the transaction's condition.
func refusal(err error) *pgconn.PgError {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		return nil
	}
	if slices.Contains([]string{"08", "25", "28", "40", "53", "55", "57", "58", "XX"}, pg.Code[:2]) {
		return nil
	}
	return pg
}

// byteOffset is where character n of SQL, counted from 0, begins. The end of
// the SQL is before the white space there, as a reader sees it.
func byteOffset(sql string, n int) int {
	sql = strings.TrimRight(sql, " \t\r\n")
	offset := 0
	for ; n > 0 && offset < len(sql); n-- {
		_, size := utf8.DecodeRuneInString(sql[offset:])
		offset += size
	}
	return offset
}
