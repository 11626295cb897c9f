// Command consumer executes delayed tasks at their time, by the statements of
// a handlers file.
package main

import (
	"os"

	"github.com/bide-mq/bide/consumer"
)

func main() {
	os.Exit(consumer.Main())
}
