// Package demo is the trial that `bide demo` runs: a shop that sells, real
// producer and consumer processes, faults planted on the way, and an audit
// that could find Bide guilty.
//
// # The shop
//
// Every order is one goroutine, a customer. Placing it is one transaction: the
// order with its deadline, its lines, the stock that they take, and the task
// that closes it. A third of the customers pay, at a random moment or within
// 50 ms of the deadline; half of those cancel the task while they pay, the
// others leave it to the recheck. A few ask for time instead: the shop cancels
// the task, withdraws the deadline, and is paid after the time at which the
// task would have fired.
//
// # The faults
//
// Half-way through, one consumer is killed with SIGKILL and another started.
// Where a broker is used, one of its delay queues is emptied, so that messages
// are lost for good; which queue, and how, is the business of [Config].Purge.
//
// # The audit
//
// Triggers of the shop stamp each change of an order's status with
// clock_timestamp(). From the shop's own tables alone follow
//
//   - lost: orders still unpaid and open when everything is over;
//   - early: orders closed by a statement that began before the deadline, a
//     withdrawn deadline being infinitely far;
//   - double: orders closed more than once, or both closed and paid;
//   - stock_drift: units by which the shelves differ from what was received
//     less what open and paid orders hold, or from the movements recorded.
//
// How late the closes were is measured with the same stamps. Only which way a
// task came (rescued, and what the percentiles cover) is read from Bide's
// history.
//
// The services run in process groups of their own and are stopped on every way
// out of [Run]; on Linux the kernel ends them even when the demo is killed.
package demo
