// Package relay hands tasks from the ledger to a broker.
//
// # A batch's life
//
//	claim    one statement: WAITING tasks inside a window become SENT, and a
//	         journal row stands for the batch
//	publish  each message at the level that fits the remaining time now; no
//	         transaction is open while the broker is spoken to
//	settle   one statement: the journal row goes, and what the broker refused,
//	         or may not have, is WAITING again
//
// # Invariants
//
//   - A task is SENT only while a journal row names it or the broker has
//     confirmed its message. A relay that dies at any point leaves the journal
//     row, and any relay gives batches older than the lease back.
//   - A message is published at most once per claim. Claims repeat, so messages
//     may: a message is a hint, and a second one is harmless.
//   - A publish gives up well before its batch's lease ends, so that two relays
//     do not work on one batch.
//   - Per level, no more tasks are claimed than the broker's window and the
//     next one can hold. One level that stops confirming cannot take the
//     connection's flow control, or this process's memory, from the others.
//
// # Failures
//
// While the session is down or blocked nothing is claimed: the tasks stay
// WAITING, and the sweep takes them the moment they are due. A level whose
// confirms time out, or whose queue is missing, is quarantined: its window is
// closed and its tasks wait for the next lower level, until a probe message
// sent through it is confirmed. Refusals slow the claims down to the poll
// period, so that a full queue is not hammered.
package relay
