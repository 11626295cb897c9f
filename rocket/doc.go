// Package rocket is the RocketMQ driver: one topic and one consumer group per
// ledger, delays by the broker's fixed levels (4.x and 5.x) or by timer messages
// (5.x).
//
// # Facts first
//
// [Discover] asks the brokers what they are before the first message, because
// what a broker cannot do it does not refuse: a 4.x broker confirms a timer
// message and delivers it at once, and every broker takes a level beyond its
// table for its last one. [NewPublisher] wants the facts. A publisher asks again
// whenever it has a new session, and [Publisher.Run] ends with a [Fault] when
// the brokers have changed, since the relay's plan was made for the old ones.
// Where access control or a managed service denies the questions, the facts are
// configured (Version, Table, MaxDelay). A wrong one shows as early arrivals,
// which the worker counts and guards against.
//
// # Sessions
//
// A session is a connection of the driver's own (package remoting) to each
// master, one producer or consumer of the client library, and a question to each
// broker every 250 ms:
//
//	 open ──▶ up ⇄ silent ──▶ ended ──▶ (backoff) ──▶ open
//
//	open    ask the name server, link to the masters, see to the topic
//	up      every broker answers, sends are answered
//	silent  an answer is owed for 1 s: Session says down, nothing is torn down
//	ended   a connection broke, or silence lasted 5 s, or the broker has
//	        forgotten the consumer, or one that was missing is back
//
// The library reconnects by itself, but slowly: it pauses 3 s after a fetch that
// failed, 10 s after an offset that is gone, up to 20 s before it looks at its
// queues again and 30 s before it tells a broker that it consumes. So a session
// that has ended is replaced, clients included. What the old consumer held comes
// again, marked as redelivered.
//
// With several masters the publisher is up while one of them answers, and passes
// over the others; the subscriber is down while one is silent, so that the sweep
// looks after what lies there. Name servers drop a broker whose connection
// breaks at once, and a silent one after two minutes.
//
// # Publishing
//
// Each message is made anew, with DELAY or TIMER_DELIVER_MS and never both, with
// the task's id as KEYS and the message's identity as UNIQ_KEY (the library's
// own ids repeat within a second of heavy traffic). Batches are not used: a
// broker ignores the delay of their members. Sends are synchronous, from a fixed
// number of places, without the library's retries. A busy broker, which has
// turned a message away unseen, is asked again until the confirm timeout; every
// other answer is final. Timers are asked for at whole seconds, and a 5.x broker
// delivers them within 0.3 s after.
//
// # Consuming
//
// RocketMQ acknowledges by position: an acknowledgement counts when all before
// it in the queue have theirs. The library hands over batches of up to 32 on a
// goroutine each, which waits until the batch is acknowledged; so thousands can
// be held, and one that is held long keeps nothing back but the position.
// Positions are told to the broker every second; after a crash about as much
// comes again. A panic of the handler is logged and the message acknowledged.
// Nothing is ever sent back: retries would travel by levels, 10 s and more, and
// end in a dead letter queue.
//
// Queues are divided among the clients that the broker lists, and it may list
// one that is gone for two minutes more. Consumers are numbered, so that the
// workers leave out those that have been replaced; see lineage.
//
// RocketMQ marks only what was sent back as delivered before. What lay in a
// queue when the consumer was given it counts as redelivered here, since another
// may have had it; see handover.
//
// Shutdown stops fetching, waits for acknowledgements, tells the positions until
// the broker knows them, and drops the queues before it lets the library shut
// down. Left to itself the library waits for nothing, and closes a channel that
// a fetch may be writing to, which kills the process
// (apache/rocketmq-client-go#1051).
//
// # What the client library does that nothing here can mend
//
// All of it was seen in, or read from, v2.1.3-0.20251226070945-2173d070fd1b.
// Older releases lack timers, lose messages that could not be sent back, and
// ignore the send timeout.
//
//   - It encrypts without verifying certificates, so [Config].TLS is refused.
//   - A consumer that is shut down leaves about 20 sleeping goroutines, half of
//     them until the hour or the month is over; sessions are few.
//   - A rebalance that takes a queue away forgets the positions of the others
//     until their next acknowledgement: more comes again after a crash.
//   - It holds one lock while it dials, for all addresses. Sends are reported
//     when their time is over, and their places come back later.
//   - It unpacks compressed bodies without a limit: whoever may write to the
//     topic can make workers run out of memory.
//   - Shutdown races with a rebalance (testdata/library.supp).
//
// # What the broker does that nothing here can mend
//
// It confirms before the disk has the message unless flushDiskType is
// SYNC_FLUSH; since 5.3.2 it discards a timer after three failed deliveries
// unless timerEnableRetryUntilSuccess is set; it delivers again what it had
// delivered in the last seconds before a crash. [Check] warns of the settings,
// and the ledger's sweep finds what is lost. Deleting a task does not recall its
// message: the worker drops it. Brokers are spoken to directly; RocketMQ 5's
// proxy refuses a topic that carries both delayed and undelayed messages.
package rocket
