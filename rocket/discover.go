package rocket

import (
	"context"
	"errors"
	"fmt"
)

// Discover finds out what the brokers are and whether the configuration suits
// them. An error that wraps a [*bide.Fault] stays the same however often it is
// tried; any other is worth another attempt, such as while no broker answers.
// Where the configuration holds all the facts that matter, nobody is asked.
func Discover(ctx context.Context, cfg Config) (Facts, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return Facts{}, fmt.Errorf("rocketmq: %w", err)
	}
	if !cfg.mustAsk() {
		return decide(cfg, nil)
	}
	masters, err := cfg.masters(ctx)
	if err != nil {
		return Facts{}, err
	}
	links, missing := cfg.connect(ctx, masters)
	defer closeLinks(links)
	if len(links) == 0 {
		return Facts{}, errors.Join(missing...)
	}
	return decide(cfg, factsOf(links))
}

// factsOf returns what the brokers have said of themselves.
func factsOf(links []*link) []BrokerFacts {
	facts := make([]BrokerFacts, len(links))
	for i, l := range links {
		facts[i] = l.facts
	}
	return facts
}

func closeLinks(links []*link) {
	for _, l := range links {
		l.conn.Close()
	}
}
