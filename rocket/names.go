package rocket

import "fmt"

// topologyVersion is part of every name. It changes when topic or groups come
// to mean something else, so that old and new services run beside each other.
const topologyVersion = "v1"

// Topic is where every message goes and where the subscriber finds it:
// <prefix>-<ledger>-v1, after the namespace and a '%' where there is one.
func (c Config) Topic() string {
	return c.inNamespace(fmt.Sprintf("%s-%s-%s", c.Prefix, c.Ledger.Short(), topologyVersion))
}

// Group is the consumer group, whose offsets say what is acknowledged:
// <prefix>-<ledger>-v1-workers.
func (c Config) Group() string {
	return c.inNamespace(fmt.Sprintf("%s-%s-%s-workers", c.Prefix, c.Ledger.Short(), topologyVersion))
}

// producerGroup is only a label: it has a meaning for transactions.
func (c Config) producerGroup() string {
	return c.inNamespace(fmt.Sprintf("%s-%s-%s-relays", c.Prefix, c.Ledger.Short(), topologyVersion))
}

// inNamespace does what the client library's own option does, except that that
// one writes into the caller's message, once per attempt.
func (c Config) inNamespace(name string) string {
	if c.Namespace == "" {
		return name
	}
	return c.Namespace + "%" + name
}
