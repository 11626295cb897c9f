package outbox

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/tern/v2/migrate"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrationTries bounds how often a migration that lost a race is looked at
// again; one race resolves within one look.
const migrationTries = 5

// Migrate brings the ledger in the schema to the version of this build and
// returns that version. It makes the schema when it is missing. Several
// processes may migrate at once: a lock makes the others wait, and behind a
// transaction pooler, where a session's lock holds little, the ones that lose
// the race see that the work is done.
//
// The connection's role owns what it creates; services that also keep house
// should run as that role.
func Migrate(ctx context.Context, conn *pgx.Conn, schema Schema) (int, error) {
	if err := schema.Validate(); err != nil {
		return 0, err
	}
	for try := 1; ; try++ {
		version, err := migrateOnce(ctx, conn, schema)
		if err == nil || try == migrationTries || !lostRace(err) {
			return version, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Duration(try) * 200 * time.Millisecond):
		}
	}
}

func migrateOnce(ctx context.Context, conn *pgx.Conn, schema Schema) (int, error) {
	if err := createSchema(ctx, conn, schema); err != nil {
		return 0, fmt.Errorf("create schema %s: %w", schema, err)
	}
	m, err := newMigrator(ctx, conn, schema)
	if err != nil {
		return 0, err
	}
	if err := m.Migrate(ctx); err != nil {
		return 0, fmt.Errorf("migrate schema %s: %w", schema, err)
	}
	return len(m.Migrations), nil
}

// createSchema makes the schema under a lock, since IF NOT EXISTS alone races.
// It leaves one that is there alone: even IF NOT EXISTS asks for the right to
// create schemas, which the owner of a schema that was made for it need not have.
func createSchema(ctx context.Context, conn *pgx.Conn, schema Schema) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('bide migrate'))"); err != nil {
			return err
		}
		var exists bool
		if err := tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", string(schema)).Scan(&exists); err != nil || exists {
			return err
		}
		_, err := tx.Exec(ctx, "CREATE SCHEMA "+string(schema))
		return err
	})
}

func newMigrator(ctx context.Context, conn *pgx.Conn, schema Schema) (*migrate.Migrator, error) {
	m, err := migrate.NewMigrator(ctx, conn, versionTable(schema))
	if err != nil {
		return nil, fmt.Errorf("create version table in schema %s: %w", schema, err)
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
	err = db.QueryRow(ctx, "SELECT version FROM "+versionTable(schema)).Scan(&have)
	if code := sqlState(err); code == undefinedTable || code == invalidSchemaName || errors.Is(err, pgx.ErrNoRows) {
		return 0, len(names), nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the ledger's version: %w", err)
	}
	return have, len(names), nil
}

// SQLSTATEs that the ledger tells apart.
const (
	undefinedTable    = "42P01"
	invalidSchemaName = "3F000"
)

// lostRace reports errors that another migration at the same time explains.
func lostRace(err error) bool {
	switch sqlState(err) {
	case "23505", // unique_violation, in a catalog
		"42P06", "42P07", "42710", "42723", // duplicate schema, table, object, function
		"XX000", // tuple concurrently updated
		"55000": // advisory lock not held: a pooler gave us another session
		return true
	}
	return false
}

// sqlState returns the error's SQLSTATE, or "".
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
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
