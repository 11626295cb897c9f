package brokertest

import "go.uber.org/goleak"

// RocketMQLeaks are what RocketMQ's client library leaves behind for some time:
// loops that sleep before they first look whether they should end (10 s; 15
// minutes for the one that looks for expired messages; until the minute, the
// hour and the month are over for the ones that print statistics), fetches and
// rebalances that wait for a broker whose connection is closed (30 s, 3 s) or for
// the end of a pause (30 s), and the connection to the name server, which nothing
// closes (120 s). One goroutine starts with the process.
func RocketMQLeaks() []goleak.Option {
	const library = "github.com/apache/rocketmq-client-go/v2/"
	options := []goleak.Option{goleak.IgnoreAnyFunction("github.com/patrickmn/go-cache.(*janitor).Run")}
	for _, function := range []string{
		"internal.(*rmqClient).Start.func1.1",
		"internal.(*rmqClient).Start.func1.2",
		"internal.(*rmqClient).Start.func1.3",
		"internal.(*rmqClient).Start.func1.4",
		"consumer.(*pushConsumer).Start.func1.2",
		"consumer.(*pushConsumer).pullMessage",
		"consumer.(*statsItemSet).init.func4",
		"consumer.(*statsItemSet).init.func5",
		"consumer.(*statsItemSet).init.func6",
		"internal.(*rmqClient).RebalanceImmediately",
		"internal.(*rmqClient).RebalanceIfNotPaused",
		"internal/remote.(*remotingClient).receiveResponse",
	} {
		options = append(options, goleak.IgnoreAnyFunction(library+function))
	}
	return options
}
