package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Filter says which tasks an operator means. Zero fields do not count.
type Filter struct {
	ID      int64
	BizType string
	BizID   string
	// State is a live task's state or a finished one's result.
	State string
	// Overdue is the least time that live tasks are overdue by; nil for any.
	Overdue *time.Duration
	// Limit is the most tasks to return.
	Limit int
}

// Record is a task, live or finished, as an operator sees it.
type Record struct {
	ID         int64           `json:"id"`
	BizType    string          `json:"biz_type"`
	BizID      string          `json:"biz_id"`
	State      string          `json:"state"`
	FireAt     time.Time       `json:"fire_at"`
	RunAt      *time.Time      `json:"run_at"`
	FinishedAt *time.Time      `json:"finished_at"`
	Via        string          `json:"via"`
	Sends      int             `json:"sends"`
	Attempts   int             `json:"attempts"`
	Reclaims   int             `json:"reclaims"`
	LastError  string          `json:"last_error"`
	CreatedAt  time.Time       `json:"created_at"`
	Payload    json.RawMessage `json:"payload"`
}

// Find returns the tasks that the filter means, the latest first.
func (l *Ledger) Find(ctx context.Context, f Filter) ([]Record, error) {
	records, err := collect(ctx, l, pgx.RowToStructByPos[Record], "find", f.ID, f.BizType, f.BizID, f.State, f.Overdue, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("find tasks: %w", err)
	}
	return records, nil
}

// Requeue lets the FAILED tasks that the filter means start over, at once if
// they are due. Only ID, BizType and BizID of the filter count.
func (l *Ledger) Requeue(ctx context.Context, f Filter) (int, error) {
	var n int
	err := l.inTx(ctx, func(b *pgx.Batch) { l.queueCounted(b, &n, "requeue", f.ID, f.BizType, f.BizID) })
	if err != nil {
		return 0, fmt.Errorf("requeue tasks: %w", err)
	}
	return n, nil
}

// Cancel withdraws a task as [Schema.Cancel] does; the operator is recorded as
// the one who did it.
func (l *Ledger) Cancel(ctx context.Context, bizType, bizID string) (answer Answer, err error) {
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		answer, err = l.schema.call(ctx, tx, "cancel", "cancel_as($1, $2, 'operator')", bizType, bizID)
		return err
	})
	return answer, err
}

// Audited is one promise, held against the ledger.
type Audited struct {
	Promise string `json:"promise"`
	Claim   string `json:"claim"`
	// Broken is the number of tasks that break it.
	Broken int `json:"broken"`
	// Examples are the ids of up to ten of them.
	Examples []int64 `json:"examples"`
}

// Audit holds the promises against ledger and history. It reads all of both.
func (l *Ledger) Audit(ctx context.Context) ([]Audited, error) {
	audited, err := collect(ctx, l, pgx.RowToStructByPos[Audited], "audit")
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return audited, nil
}

// Diagnosis is what an operator should know of the ledger's database.
type Diagnosis struct {
	ServerVersion   int
	Isolation       string
	DeadlockTimeout int64 // milliseconds
	// Stray is the number of finished tasks in the default partition.
	Stray int
	// DaysAhead is the number of partitions for days to come.
	DaysAhead int
	// Owner says whether the role may make and drop partitions.
	Owner bool
	// Failed is the number of tasks that were given up.
	Failed int
	// StaleBatches is the number of batches that no relay has taken over.
	StaleBatches int
	// OldestTransaction is the age of the oldest open transaction.
	OldestTransaction time.Duration
}

// Diagnose looks at the ledger's database.
func (l *Ledger) Diagnose(ctx context.Context) (Diagnosis, error) {
	rows, err := l.pool.Query(ctx, l.q["diagnose"])
	if err != nil {
		return Diagnosis{}, fmt.Errorf("diagnose the ledger: %w", err)
	}
	d, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Diagnosis])
	if err != nil {
		return Diagnosis{}, fmt.Errorf("diagnose the ledger: %w", err)
	}
	return d, nil
}
