// Package consumer runs Bide's consumer, with handlers in Go beside those of
// the handlers file. cmd/consumer is this package without any; a program of
// your own needs five lines:
//
//	func main() {
//		os.Exit(consumer.Main(consumer.WithHandler("send_reminder", consumer.Func(remind))))
//	}
//
// A handler acts inside the transaction that also finishes its task, so that
// its SQL takes effect exactly once. What it does outside the database may
// happen again if the commit fails.
package consumer
