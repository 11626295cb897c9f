package handler_test

import (
	"fmt"

	"github.com/bide-mq/bide/internal/handler"
)

// Everything that is wrong is reported at once, with its place and a remedy.
func ExampleParse() {
	_, err := handler.Parse("handlers.yaml", []byte(`handlers:
  close_order:
    lock: orders(id)
    sql: |
      SELECT id FROM shop.orders
      WHERE id = ANY ($1) AND status = 'UNPAID'
      FOR UPDATE SKIP LOCKED
    retries: 3
`))
	fmt.Println(err)
	// Output:
	// handlers.yaml:8:5: unknown key "retries" in handler "close_order"; known are lock, sql and batch
	// handlers.yaml:3:11: lock "orders(id)" is not of the form schema.table(key); write for example shop.orders(id), or '"Shop"."Orders"("Id")' for names with capitals
	// handlers.yaml:7:18: SKIP LOCKED passes over held rows without a word, and their tasks would be lost as skipped; name the row in lock: and Bide tries held rows again, or leave SKIP LOCKED out
}
