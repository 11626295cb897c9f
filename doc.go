// Package bide is the vocabulary that the parts of the service share: the
// message that travels through a broker, the two ports, [Publisher] and
// [Subscriber], that a broker driver implements, and the [Finding] that a check
// comes to.
//
// # The claim check
//
// A task lives in the ledger (package outbox), a set of tables in the order
// service's own PostgreSQL database. What travels through the broker is a
// [Message]: the task's id, the time it was due when it left, and the time at
// which the broker was asked to deliver it. It is a hint to look at the row.
// A forged, stale, duplicated or early message can therefore cost a look at
// the ledger and never an effect, and a lost one costs a few seconds: the
// sweep finds the row.
//
// # The seam
//
// A driver transports and reports; it never decides policy. It says what its
// broker can do ([Capabilities]), what became of each message ([Outcome]) and
// whether its session lives ([Session]). Which delay a task takes, when it is
// claimed, what is tried again and what is given up are decided by the loops
// (internal/relay, internal/worker), which know no broker.
//
// The package imports the standard library only.
package bide
