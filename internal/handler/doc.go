// Package handler turns due tasks into effects. A [Handler] acts for one
// biz_type inside the transaction that also finishes its tasks, so that an
// effect and its record commit together or not at all.
//
// # The handlers file
//
// A YAML file maps each biz_type to an SQL statement:
//
//	handlers:
//	  close_order:
//	    lock: shop.orders(id)
//	    sql: |
//	      UPDATE shop.orders SET status = 'CLOSED'
//	      WHERE id = ANY ($1) AND status = 'UNPAID'
//	      RETURNING id
//	    batch: 200
//
// $1 holds the ids of a batch, as an array of the locked column's type. $2
// holds the payloads, as jsonb[] in the same order. The statement returns the
// ids that it acted on. They are [Done], the others [Skipped], so that the
// recheck (is the order still unpaid?) is simply the statement's own WHERE. A
// second column may give each id a verdict of its own: done, skip or retry.
//
// # Lock first, never wait
//
// A batch runs as two statements in one READ COMMITTED transaction:
//
//  1. The rows named by lock are taken FOR NO KEY UPDATE SKIP LOCKED. A row
//     that exists but is held by someone else, such as a payment in flight, is
//     [Locked] and comes again shortly; an id without a row is [Skipped].
//  2. The statement runs with the ids of the rows that are now ours.
//
// Two statements, because the second needs a snapshot taken after the locks.
// In a single statement that waits for a lock, PostgreSQL re-reads only the row
// it waited for and judges everything else by the state before the wait. A
// payment that commits during the wait is then overlooked, and a paid order is
// closed. SKIP LOCKED, because one held row must not stall its batch.
//
// Without lock there is nothing to tell a held row from a missing one. Such a
// handler therefore runs each task alone, and its statement waits for what it
// needs, within the transaction's time-outs. SKIP LOCKED inside a statement is
// refused in both cases: a row that it passes over would count as skipped, and
// the task would be lost.
//
// # What is checked, and when
//
// [Parse] finds what the text alone shows. [Set.Prepare] holds the statements
// against the database: tables, types, columns, privileges. Both report every
// fault at once, each as a [*bide.Fault] with file, line and remedy. [Set.Advise]
// looks for statements that are right but will be slow.
//
// Ids are compared as the database compares them: biz_ids 00 and 0 name the
// same bigint, and both are answered when row 0 comes back. An id that was not
// asked for, or that comes back more often than it was asked for, fails the
// batch: such a statement acts on rows that no task names.
//
// All statements travel unnamed and with declared parameter types, in one
// round trip each, which works through PgBouncer in transaction mode.
package handler
