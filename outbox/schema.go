package outbox

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
)

// DefaultSchema is where the ledger lives unless configured otherwise.
const DefaultSchema Schema = "bide"

// Schema is the PostgreSQL schema of a ledger. Its methods are the
// application's side of the ledger: they run in the application's own
// transaction and take effect when it commits.
type Schema string

// schemaName allows what needs no quoting. PostgreSQL cuts longer names.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Validate refuses a name that would need quoting.
func (s Schema) Validate() error {
	if !schemaName.MatchString(string(s)) || strings.HasPrefix(string(s), "pg_") {
		return fmt.Errorf("schema %q: want 1 to 63 of a-z, 0-9 and _, not starting with a digit or pg_", string(s))
	}
	return nil
}

//go:embed sql/*.sql
var sqlFiles embed.FS

// queries holds the embedded statements, rendered for one schema, by file name
// without its ending.
type queries map[string]string

func (s Schema) queries() (queries, error) {
	entries, err := sqlFiles.ReadDir("sql")
	if err != nil {
		return nil, fmt.Errorf("read embedded statements: %w", err)
	}
	q := make(queries, len(entries))
	for _, e := range entries {
		text, err := sqlFiles.ReadFile("sql/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read embedded statement %s: %w", e.Name(), err)
		}
		q[strings.TrimSuffix(e.Name(), ".sql")] = s.render(string(text))
	}
	return q, nil
}

// render puts the schema's name where the SQL says {{.schema}}, the form that
// the migrations use as well.
func (s Schema) render(sql string) string {
	return strings.ReplaceAll(sql, "{{.schema}}", string(s))
}
