package rocket

import (
	"context"
	"errors"
	"fmt"
)

// Discover finds out what the brokers are and whether the configuration suits
// them. An error that wraps a [*Fault] stays the same however often it is
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
	return cfg.discover(ctx, links)
}

// discover asks the brokers over the links.
func (c Config) discover(ctx context.Context, links []*link) (Facts, error) {
	if !c.mustAsk() {
		return decide(c, nil)
	}
	brokers := make([]BrokerFacts, len(links))
	for i, l := range links {
		var err error
		if brokers[i], err = l.facts(ctx, c.DialTimeout); err != nil {
			return Facts{}, err
		}
	}
	return decide(c, brokers)
}

func closeLinks(links []*link) {
	for _, l := range links {
		l.conn.Close()
	}
}
