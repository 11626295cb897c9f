package outbox

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/tern/v2/migrate"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrate brings the ledger in the schema to the version of this build and
// returns the version it has then. It makes the schema when it is missing, and
// leaves a ledger alone that a newer build has migrated.
//
// All of it is one transaction under a lock that ends with it: several
// processes may migrate at once, a failure leaves nothing behind, and a
// transaction pooler may stand between.
//
// The connection's role owns what it creates; services that also keep house
// should run as that role.
func Migrate(ctx context.Context, conn *pgx.Conn, schema Schema) (version int, err error) {
	if err := schema.Validate(); err != nil {
		return 0, err
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		version, err = migrateIn(ctx, tx, schema)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("migrate schema %s: %w", schema, err)
	}
	return version, nil
}

func migrateIn(ctx context.Context, tx pgx.Tx, schema Schema) (int, error) {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('bide migrate'))"); err != nil {
		return 0, err
	}
	if err := createSchema(ctx, tx, schema); err != nil {
		return 0, err
	}
	have, want, err := Version(ctx, tx, schema)
	if err != nil || have >= want {
		return have, err
	}
	// The migrator's own lock is the session's, and an error keeps it from
	// giving it back.
	err = pgx.BeginFunc(ctx, tx, func(pgx.Tx) error { return runMigrations(ctx, tx.Conn(), schema) })
	if err != nil {
		_, unlockErr := tx.Exec(ctx, "SELECT pg_advisory_unlock_all()")
		return 0, errors.Join(err, unlockErr)
	}
	return want, nil
}

// createSchema leaves a schema that is there alone: even IF NOT EXISTS asks for
// the right to create schemas, which the owner of a schema that was made for it
// need not have.
func createSchema(ctx context.Context, tx pgx.Tx, schema Schema) error {
	var exists bool
	if err := tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", string(schema)).Scan(&exists); err != nil || exists {
		return err
	}
	_, err := tx.Exec(ctx, "CREATE SCHEMA "+string(schema))
	return err
}

func runMigrations(ctx context.Context, conn *pgx.Conn, schema Schema) error {
	m, err := newMigrator(ctx, conn, schema)
	if err != nil {
		return err
	}
	return m.Migrate(ctx)
}

func newMigrator(ctx context.Context, conn *pgx.Conn, schema Schema) (*migrate.Migrator, error) {
	m, err := migrate.NewMigratorEx(ctx, conn, versionTable(schema), &migrate.MigratorOptions{DisableTx: true})
	if err != nil {
		return nil, fmt.Errorf("create version table: %w", err)
	}
	m.Data["schema"] = string(schema)
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, fmt.Errorf("open migrations: %w", err)
	}
	if err := m.LoadMigrations(files); err != nil {
		return nil, fmt.Errorf("load migrations: %w", err)
	}
	return m, nil
}

func versionTable(schema Schema) string { return string(schema) + ".schema_version" }

// Version returns the version of the ledger in the schema, 0 where there is
// none, and the version that this build needs.
func Version(ctx context.Context, db Querier, schema Schema) (have, want int, err error) {
	names, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return 0, 0, fmt.Errorf("read migrations: %w", err)
	}
	var exists bool
	err = db.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", versionTable(schema)).Scan(&exists)
	if err == nil && exists {
		err = db.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM "+versionTable(schema)).Scan(&have)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the ledger's version: %w", err)
	}
	return have, len(names), nil
}

// sqlState returns the error's SQLSTATE, or "".
func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// Unreachable reports whether the error says that the database cannot be
// reached or cannot serve yet, so that waiting may help.
func Unreachable(err error) bool {
	var connect *pgconn.ConnectError
	switch code := sqlState(err); {
	case code == "57P03", strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"): // starting, connection, resources
		return true
	case code != "":
		return false
	}
	return errors.As(err, &connect) || pgconn.Timeout(err) || errors.Is(err, io.ErrUnexpectedEOF)
}
