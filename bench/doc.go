// Command bench measures Bide's services as they are: built executables, real
// servers, lateness taken from the effects' own stamps in the database.
//
//	lateness  tasks at a steady rate, due at random milliseconds: percentiles
//	          of effect minus fire_at, effects before fire_at, and each
//	          service's resident memory; beside it the broker's own delay at
//	          the same rate, by its own client
//	held      many messages held in one consumer's memory at once, and its
//	          resident memory
//
// Servers are found by BIDE_DATABASE_URL, BIDE_RABBITMQ_URL and
// BIDE_ROCKETMQ_NAME_SERVERS. Every run makes
// a database of its own and drops it.
package main
