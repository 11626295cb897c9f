package rocket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/rocket/internal/remoting"
)

// askNameServer puts questions to the first name server that answers. Name
// servers do not know each other; each knows all brokers.
func (c Config) askNameServer(ctx context.Context, ask func(context.Context, *remoting.Conn) error) error {
	var unreachable []error
	for _, address := range c.NameServers {
		err := c.dial(ctx, address, ask)
		if err == nil {
			return nil
		}
		if _, answered := errors.AsType[*remoting.Refusal](err); answered {
			return translate("name server "+address, err)
		}
		if _, ok := errors.AsType[*bide.Fault](err); ok {
			return err
		}
		unreachable = append(unreachable, fmt.Errorf("name server %s: %w", address, err))
	}
	return fmt.Errorf("%w: %w", bide.ErrSessionDown, errors.Join(unreachable...))
}

// dial puts questions over a connection of their own.
func (c Config) dial(ctx context.Context, address string, ask func(context.Context, *remoting.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	conn, err := remoting.Dial(ctx, address, c.credentials())
	if err != nil {
		return err
	}
	defer conn.Close()
	return ask(ctx, conn)
}

// masters returns the brokers that take messages, with the number of the
// topic's queues on each. The list of all brokers may be denied; then only the
// ones that have the topic are known.
func (c Config) masters(ctx context.Context) (masters []remoting.Broker, err error) {
	err = c.askNameServer(ctx, func(ctx context.Context, conn *remoting.Conn) error {
		route, err := conn.Route(ctx, c.Topic())
		if err != nil {
			return err
		}
		all, err := conn.Cluster(ctx)
		if refusal, ok := errors.AsType[*remoting.Refusal](err); ok && len(route) > 0 && denied(refusal) {
			all, err = route, nil
		}
		if err != nil {
			return err
		}
		masters, err = c.choose(all, route)
		return err
	})
	return masters, err
}

// choose keeps the masters of the one cluster that is meant.
func (c Config) choose(all, route []remoting.Broker) ([]remoting.Broker, error) {
	var masters []remoting.Broker
	var clusters []string
	for _, b := range all {
		if b.Master == "" || c.Cluster != "" && b.Cluster != c.Cluster {
			continue
		}
		if i := slices.IndexFunc(route, func(r remoting.Broker) bool { return r.Name == b.Name }); i >= 0 {
			b.Queues = route[i].Queues
		}
		masters = append(masters, b)
		if !slices.Contains(clusters, b.Cluster) {
			clusters = append(clusters, b.Cluster)
		}
	}
	if len(clusters) > 1 {
		return nil, &bide.Fault{Finding: bide.Finding{
			Severity: bide.SeverityError, Subject: c.endpoint(),
			Problem: "knows several clusters: " + strings.Join(clusters, ", "), Remedy: "set the cluster to the one to use",
		}}
	}
	if len(masters) == 0 {
		return nil, fmt.Errorf("no broker has registered%s", within(c.Cluster))
	}
	return masters, nil
}

func within(cluster string) string {
	if cluster == "" {
		return ""
	}
	return " in cluster " + cluster
}

// topicPatience bounds the wait for a new topic to be known at the name server.
// Brokers register a new topic at once.
const topicPatience = 5 * time.Second

// ensureTopic makes the topic on the masters that lack it and waits until the
// name server shows it.
func (c Config) ensureTopic(ctx context.Context, links []*link) error {
	var faults []error
	has, made := 0, 0
	for _, l := range links {
		if l.broker.Queues > 0 {
			has++
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
		err := l.conn.CreateTopic(ctx, c.Topic(), c.Queues)
		cancel()
		if err != nil {
			faults = append(faults, c.topicFault(l, err))
			continue
		}
		made++
	}
	if has+made == 0 {
		return errors.Join(faults...)
	}
	if made == 0 {
		return nil
	}
	return c.awaitTopic(ctx, has+made)
}

func (c Config) topicFault(l *link, err error) error {
	if _, answered := errors.AsType[*remoting.Refusal](err); !answered {
		return fmt.Errorf("%w: %s: %w", bide.ErrSessionDown, l.subject(), err)
	}
	return &bide.Fault{Err: err, Finding: bide.Finding{
		Severity: bide.SeverityError, Subject: "topic " + c.Topic(), Problem: "does not exist, and " + l.subject() + " does not let us make it",
		Remedy: fmt.Sprintf("make it (mqadmin updateTopic -b %s -t %s -r %d -w %d -p 6), or let the access key create topics", l.broker.Master, c.Topic(), c.Queues, c.Queues),
	}}
}

// awaitTopic waits until the topic has queues on n brokers.
func (c Config) awaitTopic(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, topicPatience)
	defer cancel()
	for {
		found := 0
		err := c.askNameServer(ctx, func(ctx context.Context, conn *remoting.Conn) error {
			route, err := conn.Route(ctx, c.Topic())
			for _, b := range route {
				if b.Queues > 0 {
					found++
				}
			}
			return err
		})
		if found >= n {
			return nil
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return errors.Join(fmt.Errorf("%w: topic %s was made and is not in the name server's route", bide.ErrSessionDown, c.Topic()), err)
		}
	}
}
