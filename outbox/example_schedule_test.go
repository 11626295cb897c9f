package outbox_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide/outbox"
)

// One live task per key: a repeated request changes nothing, and the last word
// on the time counts.
func ExampleSchema_Schedule() {
	ctx := context.Background()
	db, drop := exampleShop(ctx)
	defer drop()

	deadline := time.Date(2999, 12, 24, 18, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{deadline, deadline, deadline.Add(time.Hour)} {
		err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			answer, err := outbox.DefaultSchema.Schedule(ctx, tx, "close_order", "1001", at, map[string]string{"reason": "unpaid"})
			fmt.Println(answer)
			return err
		})
		mustExample(err)
	}

	// Output:
	// created
	// unchanged
	// moved
}

// What a cancel and a reschedule reached, told by their answers.
func ExampleSchema_Cancel() {
	ctx := context.Background()
	db, drop := exampleShop(ctx)
	defer drop()

	schema := outbox.DefaultSchema
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		_, err := schema.ScheduleIn(ctx, tx, "close_order", "1001", 30*time.Minute, nil)
		mustExample(err)
		change, err := schema.Reschedule(ctx, tx, "close_order", "1001", time.Now().Add(time.Hour))
		fmt.Println("reschedule:", change)
		mustExample(err)
		change, err = schema.Cancel(ctx, tx, "close_order", "1001")
		fmt.Println("cancel:", change)
		mustExample(err)
		change, err = schema.Cancel(ctx, tx, "close_order", "unheard of")
		fmt.Println("cancel another:", change)
		return err
	})
	mustExample(err)

	// Output:
	// reschedule: moved
	// cancel: cancelled
	// cancel another: not_found
}
