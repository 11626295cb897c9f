package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// databaseMark is the comment by which the demo knows its own database: a
// namesake that somebody else made is left alone.
const databaseMark = "Made by bide demo, which drops it at its next run."

// createDatabase makes the named database anew on the server and returns its
// URL. name needs no quoting.
func createDatabase(ctx context.Context, serverURL, name string) (string, error) {
	target, err := databaseURL(serverURL, name)
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, serverURL)
	if err != nil {
		return "", fmt.Errorf("connect to the server: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := dropDatabase(ctx, conn, name); err != nil {
		return "", err
	}
	for _, sql := range []string{
		"CREATE DATABASE " + name + " TEMPLATE template0", // template1 may be in use
		"COMMENT ON DATABASE " + name + " IS '" + databaseMark + "'",
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("create database %s: %w", name, err)
		}
	}
	return target, nil
}

func dropDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	var mark string
	err := conn.QueryRow(ctx, `SELECT coalesce(shobj_description(oid, 'pg_database'), '')
		FROM pg_database WHERE datname = $1`, name).Scan(&mark)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for database %s: %w", name, err)
	}
	if mark != databaseMark {
		return fmt.Errorf("the server has a database %s that the demo did not make: rename or drop it, or give another server", name)
	}
	if _, err := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}
