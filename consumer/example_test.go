package consumer_test

import (
	"context"
	"errors"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide/consumer"
)

// remind puts a mail into the shop's outbox. A Func gets one task at a time.
func remind(ctx context.Context, tx pgx.Tx, tasks []consumer.Task) ([]consumer.Result, error) {
	task := tasks[0]
	var status string
	err := tx.QueryRow(ctx, "SELECT status FROM shop.orders WHERE id = $1::bigint FOR NO KEY UPDATE SKIP LOCKED", task.BizID).Scan(&status)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // held by a payment, or gone
		return whyNoRow(ctx, tx, task.BizID)
	case err != nil:
		return nil, err
	case status != "UNPAID":
		return []consumer.Result{{Verdict: consumer.Skipped, Reason: "order is " + status}}, nil
	}
	_, err = tx.Exec(ctx, "INSERT INTO shop.mail (order_id, template) VALUES ($1::bigint, 'pay soon')", task.BizID)
	return []consumer.Result{{Verdict: consumer.Done}}, err
}

func whyNoRow(ctx context.Context, tx pgx.Tx, id string) ([]consumer.Result, error) {
	var exists bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM shop.orders WHERE id = $1::bigint)", id).Scan(&exists)
	if exists {
		return []consumer.Result{{Verdict: consumer.Locked}}, err
	}
	return []consumer.Result{{Verdict: consumer.Skipped, Reason: "no such order"}}, err
}

// A consumer with a handler in Go beside those of its handlers file.
func Example() {
	os.Exit(consumer.Main(consumer.WithHandler("send_reminder", consumer.Func(remind))))
}
