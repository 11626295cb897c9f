// Package integration holds no code: its tests put the whole of Bide, on a real
// PostgreSQL and real brokers, through what happens in production.
//
// # The shop
//
// Every test has a database of its own with a ledger and a shop: orders that
// are UNPAID, PAID or CLOSED. Triggers stamp each change of status with the
// server's clock. The verdict over a run is SQL over these tables alone, never
// over what Bide wrote: no order may be lost, closed early, closed twice, or
// both paid and closed. The same verdict is given over systems with a planted
// bug, and must find it. The ledger's own audit comes on top.
//
// # The system under test
//
// Relays and workers run in the test's process, wired as the programs wire
// them, wherever a fault can be put into one of the small interfaces between
// the parts. Where a process has to die, the test binary runs itself again as
// a relay or a worker with a failpoint: at an exact place it sends itself
// SIGKILL. A test that plants a fault also requires that it was hit.
//
// # Servers
//
// Tests share the servers that `make test` starts. What would disturb the
// others, stopping a server above all, is done to throw-away instances.
package integration
