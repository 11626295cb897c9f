package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Querier is what a read needs: a pool, a connection or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Scheduled is what a schedule came to.
type Scheduled string

// The answers of Schedule and ScheduleIn.
const (
	// Created: a new task.
	Created Scheduled = "created"
	// Unchanged: a live task with this key and time exists.
	Unchanged Scheduled = "unchanged"
	// Moved: a live task with this key had another time, or had failed.
	Moved Scheduled = "moved"
	// Finished: this very key and time has been executed; nothing was added.
	Finished Scheduled = "finished"
)

// Change is what a cancel or a reschedule reached.
type Change string

// The answers of Cancel, CancelAll and Reschedule.
const (
	// ChangeDone: cancelled, or moved to the new time.
	ChangeDone Change = "done"
	// ChangeUnneeded: the task already had this time.
	ChangeUnneeded Change = "unchanged"
	// ChangeRequested: a worker is executing the task now. The change takes
	// effect if that execution rolls back or retries.
	ChangeRequested Change = "requested"
	// ChangeTooLate: the task has been executed.
	ChangeTooLate Change = "too_late"
	// ChangeNotFound: there is and was no such task.
	ChangeNotFound Change = "not_found"
)

// Schedule asks for bizType to be done for bizID at fireAt. One live task per
// key: the last word wins. payload is marshalled to JSON; nil stands for none.
// A fireAt in the past fires at once.
func (s Schema) Schedule(ctx context.Context, tx pgx.Tx, bizType, bizID string, fireAt time.Time, payload any) (Scheduled, error) {
	if err := checkTime(fireAt); err != nil {
		return "", fmt.Errorf("schedule %s for %s: %w", bizType, bizID, err)
	}
	return s.schedule(ctx, tx, "schedule($1, $2, $3, $4)", bizType, bizID, fireAt, payload)
}

// checkTime refuses what the ledger refuses. The driver counts microseconds in
// 64 bits, where a time beyond them would turn up as another one in range.
func checkTime(fireAt time.Time) error {
	if year := fireAt.UTC().Year(); year < 1970 || year > 2999 {
		return fmt.Errorf("fire_at %s: want a time in the years 1970 to 2999", fireAt)
	}
	return nil
}

// ScheduleIn is Schedule at the transaction's start by the database's clock
// plus delay, to the microsecond.
func (s Schema) ScheduleIn(ctx context.Context, tx pgx.Tx, bizType, bizID string, delay time.Duration, payload any) (Scheduled, error) {
	return s.schedule(ctx, tx, "schedule_in($1, $2, $3, $4)", bizType, bizID, delay, payload)
}

func (s Schema) schedule(ctx context.Context, tx pgx.Tx, call, bizType, bizID string, when, payload any) (Scheduled, error) {
	data, err := marshalPayload(payload)
	if err != nil {
		return "", fmt.Errorf("schedule %s for %s: payload: %w", bizType, bizID, err)
	}
	var answer Scheduled
	err = tx.QueryRow(ctx, "SELECT "+string(s)+"."+call, bizType, bizID, when, data).Scan(&answer)
	if err != nil {
		return "", fmt.Errorf("schedule %s for %s: %w", bizType, bizID, err)
	}
	return answer, nil
}

// marshalPayload returns the JSON text, nil for none.
func marshalPayload(payload any) (*string, error) {
	if payload == nil {
		return nil, nil
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	text := string(data)
	return &text, nil
}

// Cancel withdraws a task. It waits for another holder of the row 100 ms at
// most.
func (s Schema) Cancel(ctx context.Context, tx pgx.Tx, bizType, bizID string) (Change, error) {
	return s.change(ctx, tx, "cancel", "SELECT "+string(s)+".cancel($1, $2)", bizType, bizID)
}

// Reschedule moves a live task to another time. It waits for another holder of
// the row 100 ms at most.
func (s Schema) Reschedule(ctx context.Context, tx pgx.Tx, bizType, bizID string, fireAt time.Time) (Change, error) {
	if err := checkTime(fireAt); err != nil {
		return "", fmt.Errorf("reschedule %s for %s: %w", bizType, bizID, err)
	}
	return s.change(ctx, tx, "reschedule", "SELECT "+string(s)+".reschedule($1, $2, $3)", bizType, bizID, fireAt)
}

// CancelAll withdraws every live task of bizID and answers for each by its
// bizType.
func (s Schema) CancelAll(ctx context.Context, tx pgx.Tx, bizID string) (map[string]Change, error) {
	rows, err := tx.Query(ctx, "SELECT biz_type, outcome FROM "+string(s)+".cancel_all($1)", bizID)
	if err != nil {
		return nil, fmt.Errorf("cancel all of %s: %w", bizID, err)
	}
	outcomes := map[string]Change{}
	var bizType, answer string
	_, err = pgx.ForEachRow(rows, []any{&bizType, &answer}, func() error {
		outcomes[bizType] = changeOf(answer)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cancel all of %s: %w", bizID, err)
	}
	return outcomes, nil
}

func (s Schema) change(ctx context.Context, tx pgx.Tx, verb, sql string, args ...any) (Change, error) {
	var answer string
	if err := tx.QueryRow(ctx, sql, args...).Scan(&answer); err != nil {
		return "", fmt.Errorf("%s %v for %v: %w", verb, args[0], args[1], err)
	}
	return changeOf(answer), nil
}

// changeOf folds the two words for success, "cancelled" and "moved".
func changeOf(answer string) Change {
	if answer == "cancelled" || answer == "moved" {
		return ChangeDone
	}
	return Change(answer)
}
