// Package worker turns messages, and overdue ledger rows, into effects.
//
// # A message's way
//
//	arrive   parse; a foreign, garbled or probing message is acknowledged
//	peek     look the task up, many at a time: gone, rescheduled, early?
//	hold     wait out the last stretch, the message unacknowledged
//	lane     gather due tasks of one type, up to a batch or 2 ms
//	execute  one transaction: lock, recheck, act, move to history
//	ack      only after the commit
//
// Messages are never rejected. What cannot be done now is acknowledged and
// left to the ledger, or kept unacknowledged until it can.
//
// # The sweep
//
// Every worker scans for overdue tasks of its types and runs them through the
// same executor: WAITING ones at once, since no message is on its way, SENT
// ones after a grace of 3 s. The grace is 0 when there is no broker or its
// session is down, and a quarter of a second while the scans keep finding many.
// A scan starts where the last one found nothing left; from time to time a
// full one looks behind that mark, because rows do appear there: late commits,
// rolled back cancels, reschedules into the past.
//
// # Failures
//
//   - An execution that fails is halved until the poison task stands alone. It
//     alone is put off, with a growing pause, and FAILED in the end.
//   - An execution that dies without a word (worker killed, database session
//     dead) casts suspicion on its tasks. A suspect is recorded and committed
//     before it is tried again, and tried alone, one suspect at a time, so that
//     a task that kills its worker is known after three times, and its
//     neighbours go free. Trials of one task are seconds apart, so that a
//     network that loses sessions for a while convicts nobody. Suspects are
//     found by the broker's redelivery mark, by the sweep's journal, and by the
//     error of a lost session.
//   - While the database is unavailable, tasks stay in hand.
//   - A task whose order is locked by somebody else, such as a payment, is
//     tried again every 100 ms, without counting as a failure.
//   - A broker that delivers long before the time asked for is not given a task
//     a fourth time: the sweep does it.
//
// # Clocks
//
// Only the database's clock decides, in the executing transaction. The worker
// estimates it, erring on the late side, to know when to try.
//
// # Shutdown
//
// Nothing new is begun; what runs ends; what is held goes back to the ledger as
// WAITING and is acknowledged, so that another worker's sweep has it on time.
package worker
