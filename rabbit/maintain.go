package rabbit

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// PurgeTier empties the first tier that holds at least least and at most most
// messages, and returns how many it lost; 0 when no tier qualifies. It exists
// to show that nothing is lost by it.
func PurgeTier(ctx context.Context, cfg Config, least, most int) (lost int, err error) {
	cfg = cfg.WithDefaults()
	err = maintain(ctx, cfg, func(ch *amqp.Channel) error {
		for _, name := range cfg.Queues()[1:] {
			q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			if err != nil {
				return fmt.Errorf("look at queue %s: %w", name, err)
			}
			if q.Messages < least || q.Messages > most {
				continue
			}
			lost, err = ch.QueuePurge(name, false)
			if err != nil {
				return fmt.Errorf("purge queue %s: %w", name, err)
			}
			return nil
		}
		return nil
	})
	return lost, err
}

// DeleteQueues removes the queues of the configuration, messages and all.
func DeleteQueues(ctx context.Context, cfg Config) error {
	cfg = cfg.WithDefaults()
	return maintain(ctx, cfg, func(ch *amqp.Channel) error {
		for _, name := range cfg.Queues() {
			if _, err := ch.QueueDelete(name, false, false, false); err != nil {
				return fmt.Errorf("delete queue %s: %w", name, err)
			}
		}
		return nil
	})
}

// maintain runs work on a channel of its own.
func maintain(ctx context.Context, cfg Config, work func(*amqp.Channel) error) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s, err := dial(ctx, cfg, "maintenance")
	if err != nil {
		return err
	}
	defer s.close()
	ch, err := s.conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	return work(ch)
}
