// Command bench measures Bide beside what else does its job, on real servers, in
// one run: built executables, peers with their fast settings, and the brokers'
// raw clients.
//
//	lateness  tasks at a steady rate, due at random milliseconds: how far from
//	          the due time their effect was, for every contestant
//	relay     messages confirmed per second: the producer, the raw client with
//	          the same window, Watermill's forwarder
//	burst     a burst from its first message to its last effect, beside a raw
//	          pipeline of a delay queue
//	drain     due tasks worked off without a broker, beside River
//	claim     one claim among few and among many tasks, and under an old
//	          snapshot, beside the query that most would write
//	wal       WAL and row versions per task, beside River
//	midnight  very many tasks due at one instant
//	cost      memory and CPU of the services: idle, under load, with many
//	          messages held
//
// Every measurement makes a database of its own and drops it. Figures are
// collected by a record, which prints medians and spreads, writes them as JSON
// and draws them; bars then judge the ratios, one line each, last.
//
// Servers are found by BIDE_DATABASE_URL, BIDE_RABBITMQ_URL,
// BIDE_ROCKETMQ_NAME_SERVERS and BIDE_TEST_REDIS_URL.
package main
