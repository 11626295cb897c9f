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

// Answer is what a call came to, in the word that the SQL function returns.
type Answer string

// The answers.
const (
	// Created: there is a new task.
	Created Answer = "created"
	// Unchanged: a live task with this key and time exists.
	Unchanged Answer = "unchanged"
	// Moved: a live task with this key had another time, or had failed.
	Moved Answer = "moved"
	// Finished: this very key and time has been executed; nothing was added.
	Finished Answer = "finished"
	// Cancelled: the task will not be executed.
	Cancelled Answer = "cancelled"
	// Requested: a worker is executing the task now. The cancel or reschedule
	// takes effect if that execution rolls back or retries.
	Requested Answer = "requested"
	// TooLate: the task has ended.
	TooLate Answer = "too_late"
	// NotFound: there is and was no such task.
	NotFound Answer = "not_found"
)

// Schedule asks for bizType to be done for bizID at fireAt. One live task per
// key: the last word wins. payload is marshalled to JSON; nil stands for none.
// A fireAt in the past fires at once. It answers Created, Unchanged, Moved or
// Finished.
func (s Schema) Schedule(ctx context.Context, tx pgx.Tx, bizType, bizID string, fireAt time.Time, payload any) (Answer, error) {
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
func (s Schema) ScheduleIn(ctx context.Context, tx pgx.Tx, bizType, bizID string, delay time.Duration, payload any) (Answer, error) {
	return s.schedule(ctx, tx, "schedule_in($1, $2, $3, $4)", bizType, bizID, delay, payload)
}

func (s Schema) schedule(ctx context.Context, tx pgx.Tx, function, bizType, bizID string, when, payload any) (Answer, error) {
	data, err := marshalPayload(payload)
	if err != nil {
		return "", fmt.Errorf("schedule %s for %s: payload: %w", bizType, bizID, err)
	}
	return s.call(ctx, tx, "schedule", function, bizType, bizID, when, data)
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
// most, and answers Cancelled, Requested, TooLate or NotFound.
func (s Schema) Cancel(ctx context.Context, tx pgx.Tx, bizType, bizID string) (Answer, error) {
	return s.call(ctx, tx, "cancel", "cancel($1, $2)", bizType, bizID)
}

// Reschedule moves a live task to another time. It waits for another holder of
// the row 100 ms at most, and answers Moved, Unchanged, Requested, TooLate or
// NotFound.
func (s Schema) Reschedule(ctx context.Context, tx pgx.Tx, bizType, bizID string, fireAt time.Time) (Answer, error) {
	if err := checkTime(fireAt); err != nil {
		return "", fmt.Errorf("reschedule %s for %s: %w", bizType, bizID, err)
	}
	return s.call(ctx, tx, "reschedule", "reschedule($1, $2, $3)", bizType, bizID, fireAt)
}

// CancelAll withdraws every live task of bizID and answers for each by its
// bizType.
func (s Schema) CancelAll(ctx context.Context, tx pgx.Tx, bizID string) (map[string]Answer, error) {
	rows, err := tx.Query(ctx, "SELECT biz_type, outcome FROM "+string(s)+".cancel_all($1)", bizID)
	if err != nil {
		return nil, fmt.Errorf("cancel all of %s: %w", bizID, err)
	}
	answers := map[string]Answer{}
	var bizType string
	var answer Answer
	_, err = pgx.ForEachRow(rows, []any{&bizType, &answer}, func() error {
		answers[bizType] = answer
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cancel all of %s: %w", bizID, err)
	}
	return answers, nil
}

// call calls one of the ledger's functions, whose first arguments are the key.
func (s Schema) call(ctx context.Context, tx pgx.Tx, verb, function string, args ...any) (Answer, error) {
	var answer Answer
	if err := tx.QueryRow(ctx, "SELECT "+string(s)+"."+function, args...).Scan(&answer); err != nil {
		return "", fmt.Errorf("%s %v for %v: %w", verb, args[0], args[1], err)
	}
	return answer, nil
}
