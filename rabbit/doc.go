// Package rabbit is the RabbitMQ driver: it publishes through fixed delays made
// of TTL queues, and consumes what comes out of them.
//
// # Topology
//
//	                     (default exchange)
//	LevelNone ─────────────────────────────────▶ <ns>.delivery ──▶ subscriber
//	level 1 ──▶ <ns>.650       ─ expired ──────▶       ▲
//	level 2 ──▶ <ns>.9650      ─ expired ──────────────┤
//	level n ──▶ <ns>.<ttl ms>  ─ expired ──────────────┘     <ns> = bide.<ledger>.v1.<q|c>
//
// One queue per level holds messages for its time to live, which is the tier's
// nominal delay less lead and slack, and dead-letters them into one delivery
// queue. RabbitMQ expires messages at the head of a queue only; since all
// messages of a tier live equally long, the head is always the next to go, and
// no delay waits behind another. Both ways lead through the default exchange:
// there is no exchange to delete and no binding to lose, and a message whose
// destination has vanished is noticed (a return, or a dead letter that is
// kept) and not dropped in silence, as behind an exchange without bindings.
//
// A queue's arguments cannot change once it exists, so each of them is in its
// name, and a changed configuration makes new queues. Old tiers go on draining
// into the same delivery queue. The delivery queue of the other queue type is
// consumed, too, where there is one. Tiers never carry x-expires: an expiring
// queue takes its messages along. Times to live are sent as 64 bit numbers; the
// client library would cut an int to 32 bits, negative from 24.8 days on.
//
// Quorum tiers dead-letter at least once, which takes three arguments together
// (quorum, at-least-once, reject-publish); classic ones do at most once. Only
// fresh messages are published, none is forwarded, so no x-death header ever
// makes RabbitMQ see a cycle.
//
// # Sessions
//
// A publisher and a subscriber each keep one connection:
//
//	dial ─▶ declare ─▶ open channels ─▶ up ◀─▶ blocked ─▶ closed ─▶ backoff ─▶ dial
//
// The library's own recovery stays off: it acknowledges with the numbers of a
// channel that is gone. A session is never mended, only replaced; whatever
// belongs to it (confirms, deliveries, acknowledgements) ends with it.
//
// It is down when it is closed, when a message is unconfirmed for more than
// 1 s, or when the broker owes the session's probe an answer for as long. The
// probe of a publisher opens and closes a channel; that of a subscriber asks
// after the delivery queue, whose leader may be gone under a perfect
// connection. It is blocked from connection.blocked on, which RabbitMQ sends
// after the first publish under an alarm and not before, so that one batch
// becomes unknown. While blocked, the broker does not read: nothing is written
// then, time-outs do not end the session, and the unblocking brings it back.
//
// Nothing waits on the broker for ever. Every write has a deadline, closing
// has one, and closing the socket frees whatever hangs in the library; a
// context does not.
//
// # Publishing
//
// Each level has a lane: a channel, a writer and a settler.
//
//	Publish ──▶ batch ──▶ lane's jobs ──▶ writer ──▶ broker
//	                └──────── outcomes ◀── settler ◀── confirms, returns
//
// Invariants:
//
//   - At most Window messages of a level are unconfirmed, those that somebody
//     has stopped waiting for included. From about 400 on, RabbitMQ's credit
//     flow would stop the other channels of the connection as well.
//   - A message is Refused only if it was never written, or the broker said so.
//     What was written and not answered is Unknown.
//   - A confirm of a message that was returned is a refusal: RabbitMQ confirms
//     what it cannot route, after returning it.
//   - A confirm that a closing channel resolves is not a negative one. The
//     library reports both as not acknowledged, and marks the channel closed
//     first. Its NotifyPublish is not used: there, an acknowledgement of several
//     turns an earlier negative one among them into a positive one.
//   - Nothing is declared on a channel that publishes or consumes.
//
// A queue that does not confirm in time is reported as such and ends the
// session, because it would take the connection down sooner or later. A probe
// (a message of no task) only has its own outcome; while it is unanswered, the
// lane refuses everything else. A missing queue is declared again at once; one
// that was published to before makes RabbitMQ close the connection with 541,
// and the next session declares it.
//
// # Consuming
//
// Acknowledgements go one by one to the channel that delivered, once. When
// deliveries end under a living session, the queue is made sure of and consumed
// again. At the end the consumers are cancelled, what had arrived is passed on
// and its acknowledgements are waited for; the connection then stays a moment,
// since the broker's channel still holds some of them back.
//
// # What RabbitMQ does besides
//
//   - A quorum queue that is deleted and at once made again leaves its consumers
//     deaf: RabbitMQ consumes again on their behalf and loses what arrives. The
//     driver makes a deleted delivery queue only after half a second. Somebody
//     else's quick script can still do it; then the sweep delivers, until the
//     subscriber starts anew.
//   - A quorum queue made less than a second before its node is killed comes
//     back empty, confirmed messages or not: the node writes its list of queues
//     down twice a second.
//   - A delivery queue that is missing blocks each tier's dead-letter worker for
//     dead_letter_worker_publisher_confirm_timeout, three minutes by default;
//     Bide recommends 5 s, and a dead_letter_worker_consumer_prefetch of 512.
//     [Check] tries the first out, since no API shows them.
//   - Policies work behind AMQP's back: message-ttl lets messages out early,
//     expires deletes a tier, overflow turns at-least-once off, a length drops or
//     refuses. With a management URL the start fails on those that break a
//     promise.
//   - A wrong password looks like a lost connection, because the library cannot
//     announce that it wants to know. Twice in a row counts as one.
//   - From 4.0 on, a message whose consumer dies 20 times is dropped by the
//     delivery queue. The ledger still has its task.
//   - A broker's log has an error (no queue …) for each session of a subscriber
//     that looks for the other type's delivery queue in vain. It is harmless.
//   - Up to Consumers times Prefetch bodies are in memory at once, whoever
//     published them. Who may write to the queues is the broker's to decide.
//
// The user needs these permissions, PREFIX being the configured one: configure
// and read on ^PREFIX\., write on ^(PREFIX\.|amq\.default$). A subscriber does
// without write on amq.default.
package rabbit
