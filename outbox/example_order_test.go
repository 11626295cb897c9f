package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bide-mq/bide/outbox"
)

var errOrderClosed = errors.New("the order is closed")

func placeOrder(ctx context.Context, db *pgxpool.Pool) (id int64, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "INSERT INTO shop.orders DEFAULT VALUES RETURNING id").Scan(&id); err != nil {
			return err
		}
		_, err := outbox.DefaultSchema.ScheduleIn(ctx, tx, "close_order", strconv.FormatInt(id, 10), 30*time.Minute, nil)
		return err
	})
	return id, err
}

func payOrder(ctx context.Context, db *pgxpool.Pool, id int64) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		paid, err := tx.Exec(ctx, "UPDATE shop.orders SET status = 'PAID' WHERE id = $1 AND status = 'UNPAID'", id)
		if err == nil && paid.RowsAffected() == 0 {
			return errOrderClosed
		}
		if err == nil {
			_, err = outbox.DefaultSchema.Cancel(ctx, tx, "close_order", strconv.FormatInt(id, 10))
		}
		return err
	})
}

// An order and its deadline commit together or not at all. The payment updates
// the order's row, which decides the race with the deadline, and withdraws the
// task, which only saves work.
func Example_orderService() {
	ctx := context.Background()
	db, drop := exampleShop(ctx)
	defer drop()

	id, err := placeOrder(ctx, db)
	fmt.Println("placed:", err)
	printTask(ctx, db, id)

	fmt.Println("paid:", payOrder(ctx, db, id))
	printTask(ctx, db, id)

	fmt.Println("paid again:", payOrder(ctx, db, id))

	// Output:
	// placed: <nil>
	// close_order is WAITING, due 30m0s after it was created
	// paid: <nil>
	// close_order is CANCELLED, due 30m0s after it was created
	// paid again: the order is closed
}

func printTask(ctx context.Context, db *pgxpool.Pool, order int64) {
	var bizType, state string
	var delay time.Duration
	err := db.QueryRow(ctx, "SELECT biz_type, state, fire_at - created_at FROM bide.task WHERE biz_id = $1",
		strconv.FormatInt(order, 10)).Scan(&bizType, &state, &delay)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s is %s, due %s after it was created\n", bizType, state, delay)
}

// exampleShop makes a database with a ledger and the example's table.
func exampleShop(ctx context.Context) (db *pgxpool.Pool, drop func()) {
	serverURL := os.Getenv("BIDE_TEST_DATABASE_URL")
	if serverURL == "" {
		panic("BIDE_TEST_DATABASE_URL is not set: run the tests with `make test`, which starts the servers")
	}
	server, err := pgx.Connect(ctx, serverURL)
	mustExample(err)
	name := fmt.Sprintf("bide_example_%d", os.Getpid())
	_, err = server.Exec(ctx, "CREATE DATABASE "+name)
	mustExample(err)
	address, err := url.Parse(server.Config().ConnString())
	mustExample(err)
	address.Path = "/" + name
	db, err = pgxpool.New(ctx, address.String())
	mustExample(err)
	mustExample(db.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		_, err := outbox.Migrate(ctx, conn.Conn(), outbox.DefaultSchema)
		return err
	}))
	shop, err := os.ReadFile("../deploy/postgres/shop.sql")
	mustExample(err)
	_, err = db.Exec(ctx, string(shop))
	mustExample(err)
	return db, func() {
		db.Close()
		_, err := server.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		mustExample(err)
		mustExample(server.Close(ctx))
	}
}

// mustExample ends an example that cannot go on: it has no test to fail.
func mustExample(err error) {
	if err != nil {
		panic(err)
	}
}
