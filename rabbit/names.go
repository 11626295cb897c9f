package rabbit

import (
	"fmt"
	"time"
)

// topologyVersion is part of every queue name. It changes when the arguments
// of the queues do, so that old and new services run beside each other.
const topologyVersion = "v1"

// namespace opens the names of all queues of the ledger, whatever their type.
func (c Config) namespace() string {
	return fmt.Sprintf("%s.%s.%s.", c.Prefix, c.Ledger.Short(), topologyVersion)
}

// DeliveryQueue is the queue that every tier dead-letters into and that the
// subscriber consumes: <prefix>.<ledger>.v1.<q|c>.delivery.
func (c Config) DeliveryQueue() string { return c.deliveryQueue(c.QueueType) }

// Queues returns the names of all queues that the configuration declares, the
// delivery queue first, then the tiers in ascending order. The configuration
// must be valid.
func (c Config) Queues() []string {
	names := []string{c.DeliveryQueue()}
	ttls, _ := c.ttls()
	for _, ttl := range ttls {
		names = append(names, c.tierQueue(ttl))
	}
	return names
}

func (c Config) deliveryQueue(t QueueType) string { return c.namespace() + typeLetter(t) + ".delivery" }

// tierQueue is <prefix>.<ledger>.v1.<q|c>.<time to live in ms>. Everything
// that a queue cannot change once it exists is in its name, so that a changed
// configuration makes a new queue and never meets an inequivalent old one.
func (c Config) tierQueue(ttl time.Duration) string {
	return fmt.Sprintf("%s%s.%d", c.namespace(), typeLetter(c.QueueType), ttl.Milliseconds())
}

func typeLetter(t QueueType) string { return string(t[:1]) }
