// Package outbox is the ledger: a set of tables in the order service's own
// PostgreSQL database that hold every task from the moment it is promised
// until after it has ended. Whatever a broker does or loses, the ledger is
// right.
//
// # Two sides
//
// The application's side is [Schema]: schedule, cancel and reschedule inside
// the application's own transaction, so that an order and its deadline commit
// together or not at all. The same functions exist in SQL for any language
// (migrations/002_functions.sql); an INSERT of biz_type, biz_id and fire_at is
// as good.
//
// The services' side is [Ledger]: what relays, workers and operators do. Its
// statements are the files in sql.
//
// # A task's life
//
//	            claim                lock, finish
//	WAITING ------------> SENT ----------------------> history: DONE, SKIPPED
//	   ^  ^                 |                                      CANCELLED
//	   |  +-----------------+ settle, recover, give back                ^
//	   |                                                                |
//	   +--- retry, reclaim, lock and finish take WAITING ones as well   |
//	   |                                                                |
//	   +--- requeue --- FAILED <--- retry, reclaim: too many            |
//	                                                                    |
//	schedule and reschedule lead from every state to WAITING; cancel ---+
//
// RUNNING is a lease to a worker that acts outside the database.
//
// # Invariants
//
//   - One live task per (biz_id, biz_type); the last word on its time wins, over
//     every state, and voids what was requested before.
//   - A task ends once, in the statement that moves it to history, and not
//     before run_at by the database's clock: the end is guarded by the state,
//     the time, and the time at which the row was locked.
//   - Whoever changes a row says in which state and, where it matters, with
//     which time the row must be. Nobody acts on what he has read earlier.
//   - No statement of the services waits for a task: rows that are held are skipped
//     and met again. The application's schedule waits for whoever holds the key;
//     its cancel and reschedule wait for 100 ms, longer than a relay's claim
//     takes, and then leave a request.
//   - A request takes effect when the execution that it met ends without
//     finishing the task. Until then nobody begins another.
//   - The payment's transaction is never the victim of a deadlock with a worker:
//     an execution's statements and pauses sum to less than deadlock_timeout.
//
// # Journals
//
// relay_batch names the tasks that a relay has claimed and the broker has not
// confirmed: one row a batch. When its relay dies, another gives the tasks
// back. sweep_batch names those that a sweep is executing, committed before it
// acts and deleted with its end: a task that can be locked while it stands
// there belonged to an execution that died, and may have killed it.
//
// # Planning
//
// The live table turns over faster than it can be analysed, so its statistics
// are wrong most of the time. Statements are planned for their own arguments,
// by index, and never from a plan that was cached while the table was small.
//
// # Isolation
//
// Every transaction of the services is READ COMMITTED, whatever the database's
// default: each statement has to see what others have committed meanwhile.
// Under a stricter level an application's schedule may fail with SQLSTATE 40001
// like any other write, and its transaction is to be repeated; cancel and
// reschedule turn into requests instead.
package outbox
