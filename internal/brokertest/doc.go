// Package brokertest holds what tests need to know about brokers.
//
//   - [Run] is the conformance suite: what every driver promises the loops, as
//     tests. A driver's tests call it with a [System] for a real broker.
//   - [Memory] is a broker in memory that passes the suite, for tests of the
//     loops.
//   - [FaultyPublisher] and [FaultySubscriber] put faults between a loop and a
//     driver.
//   - [Proxy] stands between a driver and a server and breaks connections.
package brokertest
