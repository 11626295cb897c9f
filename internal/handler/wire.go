package handler

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// arg is a parameter in text form; a nil value is NULL.
type arg struct {
	oid   uint32
	value []byte
}

// fetch runs one statement, unnamed and with the types of its parameters
// declared, in one round trip. Only so does a bare $1 in a customer's statement
// have the type that it was promised, also for types that pgx does not know,
// and only so does it work behind a pooler that changes servers between
// transactions. It returns values in text form, nil for NULL, and keeps no
// more than limit rows.
func fetch(ctx context.Context, conn *pgx.Conn, limit int, sql string, args ...arg) ([][]*string, error) {
	values, oids := make([][]byte, len(args)), make([]uint32, len(args))
	for i, a := range args {
		values[i], oids[i] = a.value, a.oid
	}
	result := conn.PgConn().ExecParams(ctx, sql, values, oids, nil, nil)
	var rows [][]*string
	for result.NextRow() {
		if len(rows) < limit {
			rows = append(rows, texts(result.Values()))
		}
	}
	_, err := result.Close()
	return rows, err
}

// texts copies a row out of the connection's buffer.
func texts(values [][]byte) []*string {
	row := make([]*string, len(values))
	for i, v := range values {
		if v != nil {
			row[i] = new(string(v))
		}
	}
	return row
}

// array is a parameter of the array type oid. The text form of an array is the
// same whatever its elements are.
func array(conn *pgx.Conn, oid uint32, elements []*string) (arg, error) {
	value, err := conn.TypeMap().Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, elements, nil)
	return arg{oid: oid, value: value}, err
}
