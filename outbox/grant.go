package outbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Grant lets a database role use the ledger as an application does: schedule,
// cancel, reschedule, insert tasks and look at what became of them.
func Grant(ctx context.Context, conn *pgx.Conn, schema Schema, role string) error {
	if err := schema.Validate(); err != nil {
		return err
	}
	q, err := schema.queries()
	if err != nil {
		return err
	}
	sql := strings.ReplaceAll(q["grant"], "{{.role}}", pgx.Identifier{role}.Sanitize())
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("grant the ledger to role %s: %w", role, err)
	}
	return nil
}
