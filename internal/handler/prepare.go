package handler

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/bide-mq/bide"
)

// DB begins transactions: a *pgxpool.Pool or a *pgx.Conn.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Prepare checks the handlers against the database, as the role that db is,
// and makes them usable. It changes nothing. Where handlers are at fault, the
// error joins a [*bide.Fault] for each thing that is wrong; any other error means
// that the check itself did not come to an end.
func (s *Set) Prepare(ctx context.Context, db DB) error {
	var faults []error
	for _, h := range s.handlers {
		err := h.prepare(ctx, db)
		if _, fault := errors.AsType[*bide.Fault](err); err != nil && !fault {
			return fmt.Errorf("check handler %q: %w", h.bizType, err)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (h *statement) prepare(ctx context.Context, db DB) error {
	p := plan{ids: sqlType{oid: pgtype.TextArrayOID, name: "text[]"}}
	var key column
	if h.target != nil {
		err := readOnly(ctx, db, func(conn *pgx.Conn) (err error) {
			key, err = h.checkLock(ctx, conn)
			return err
		})
		if err != nil {
			return err
		}
		p.ids, p.lock, p.unique = key.array, lockStatement(*h.target), key.unique
	}
	err := readOnly(ctx, db, func(conn *pgx.Conn) error { return h.checkQuery(ctx, conn, key, &p) })
	if err == nil {
		h.plan = &p
	}
	return err
}

// readOnly runs a check in a transaction of its own, since an error ends it.
func readOnly(ctx context.Context, db DB, check func(*pgx.Conn) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, db, options, func(tx pgx.Tx) error { return check(tx.Conn()) })
}

// column is a key to lock by. Types are seen through domains.
type column struct {
	of, array sqlType
	unique    bool
}

//go:embed column.sql
var columnSQL string

func (h *statement) checkLock(ctx context.Context, conn *pgx.Conn) (column, error) {
	var (
		kind               string
		of, array          *uint32
		ofName, arrayName  *string
		unique             bool
		schema, table, key = h.target.schema, h.target.table, h.target.key
	)
	err := conn.QueryRow(ctx, columnSQL, pgx.QueryExecModeExec, schema, table, key).
		Scan(&kind, &of, &array, &ofName, &arrayName, &unique)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return column{}, h.lockFault(fmt.Sprintf("no table %s in database %s", h.target.tableName(), conn.Config().Database), "correct the name, or create the table first")
	case err != nil:
		return column{}, err
	case kind != "r" && kind != "p":
		return column{}, h.lockFault(h.target.tableName()+" is not a table", "name the table whose rows the payment locks or updates")
	case of == nil:
		return column{}, h.lockFault(fmt.Sprintf("no column %q in table %s", key, h.target.tableName()), "name its key column")
	case *array == 0:
		return column{}, h.lockFault(fmt.Sprintf("%s is of type %s, which has no arrays", h.target, *ofName), "name a key of a simpler type")
	}
	c := column{of: sqlType{*of, *ofName}, array: sqlType{*array, *arrayName}, unique: unique}
	return c, h.explainLock(ctx, conn, c)
}

// explainLock lets PostgreSQL check the lock's types and privileges, which it
// does for EXPLAIN but not when it prepares.
func (h *statement) explainLock(ctx context.Context, conn *pgx.Conn, c column) error {
	_, err := fetch(ctx, conn, 0, "EXPLAIN "+lockStatement(*h.target), arg{oid: c.array.oid})
	pg := refusal(err)
	if pg == nil {
		return err
	}
	remedy := "use a key whose type can be compared"
	if pg.Code == insufficientPrivilege {
		remedy = "grant the consumer's role SELECT and UPDATE on the table, and USAGE on its schema"
	}
	return h.lockFault(fmt.Sprintf("cannot lock rows of %s: %s (SQLSTATE %s)", h.target, pg.Message, pg.Code), remedy)
}

func (h *statement) checkQuery(ctx context.Context, conn *pgx.Conn, key column, p *plan) error {
	types := []uint32{p.ids.oid, pgtype.JSONBArrayOID}
	described, err := conn.PgConn().Prepare(ctx, "", h.query.value, types)
	if err != nil {
		return h.blame(err, 0, p)
	}
	if err := h.checkColumns(ctx, conn, described.Fields, key, p); err != nil {
		return err
	}
	const explain = "EXPLAIN "
	_, err = fetch(ctx, conn, 0, explain+h.query.value, arg{oid: types[0]}, arg{oid: types[1]})
	return h.blame(err, len(explain), p)
}

func (h *statement) checkColumns(ctx context.Context, conn *pgx.Conn, fields []pgconn.FieldDescription, key column, p *plan) error {
	fault := func(problem, remedy string) error { return h.source.fault(h.query.start, problem, remedy) }
	switch {
	case len(fields) == 0:
		return fault("statement returns nothing", "end it with RETURNING and the id, or SELECT the ids that it acted on")
	case len(fields) > 2:
		return fault(fmt.Sprintf("statement returns %d columns", len(fields)), "return the id, and a verdict (done, skip or retry) if need be")
	}
	id, err := lookUp(ctx, conn, fields[0].DataTypeOID)
	if err != nil {
		return err
	}
	p.returned, p.columns = id.array, len(fields)
	var faults []error
	if h.target != nil && id.oid != key.of.oid {
		faults = append(faults, fault(fmt.Sprintf("first column %q is %s, and %s is %s", fields[0].Name, id.name, h.target, key.of.name),
			"return the ids as they are in $1"))
	}
	if p.columns == 2 {
		verdict, err := lookUp(ctx, conn, fields[1].DataTypeOID)
		if err != nil {
			return err
		}
		if !verdict.text {
			faults = append(faults, fault(fmt.Sprintf("second column %q is %s", fields[1].Name, verdict.name), "make it text: done, skip or retry"))
		}
	}
	return errors.Join(append(faults, h.checkComparable(ctx, conn, id, fault))...)
}

// checkComparable makes sure that returned ids can be told apart. Behind a lock
// they are of the key's type, for which that is known.
func (h *statement) checkComparable(ctx context.Context, conn *pgx.Conn, id returned, fault func(problem, remedy string) error) error {
	if h.target != nil {
		return nil
	}
	if id.array != 0 {
		_, err := conn.PgConn().Prepare(ctx, "", resolveSQL, []uint32{id.array, id.array})
		if refusal(err) == nil {
			return err
		}
	}
	return fault(fmt.Sprintf("first column is %s, which cannot be compared", id.name), "return the id")
}

// returned is the type of a column that a statement returns.
type returned struct {
	sqlType
	array uint32
	text  bool
}

//go:embed type.sql
var typeSQL string

func lookUp(ctx context.Context, conn *pgx.Conn, oid uint32) (returned, error) {
	r := returned{sqlType: sqlType{oid: oid}}
	err := conn.QueryRow(ctx, typeSQL, pgx.QueryExecModeExec, oid).Scan(&r.name, &r.array, &r.text)
	return r, err
}
