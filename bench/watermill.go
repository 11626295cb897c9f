package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/delay"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
)

// watermillPeer is Watermill's delayed messages in PostgreSQL, polled every
// 10 ms instead of 1 s, deleted as they are acknowledged, by 8 subscribers.
type watermillPeer struct {
	db          *database
	publisher   message.Publisher
	subscribers []message.Subscriber
	working     sync.WaitGroup
}

const (
	watermillName  = "watermill sql"
	watermillTopic = "effects"
)

func (*watermillPeer) name() string { return watermillName }

func (w *watermillPeer) start(ctx context.Context, db *database) (err error) {
	w.db = db
	w.publisher, err = sql.NewDelayedPostgreSQLPublisher(sql.BeginnerFromPgx(db.Pool), sql.DelayedPostgreSQLPublisherConfig{
		DelayPublisherConfig: delay.PublisherConfig{},
	})
	if err != nil {
		return err
	}
	for range 8 {
		if err := w.subscribe(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (w *watermillPeer) subscribe(ctx context.Context) error {
	s, err := sql.NewDelayedPostgreSQLSubscriber(sql.BeginnerFromPgx(w.db.Pool), sql.DelayedPostgreSQLSubscriberConfig{
		DeleteOnAck: true,
		OverrideSubscriberConfig: func(c *sql.SubscriberConfig) error {
			c.PollInterval = 10 * time.Millisecond
			return nil
		},
	})
	if err != nil {
		return err
	}
	messages, err := s.Subscribe(ctx, watermillTopic)
	if err != nil {
		return err
	}
	w.subscribers = append(w.subscribers, s)
	w.working.Go(func() {
		for m := range messages {
			id, err := strconv.ParseInt(string(m.Payload), 10, 64)
			if err == nil {
				err = w.db.effect(m.Context(), id)
			}
			if err != nil {
				m.Nack()
				continue
			}
			m.Ack()
		}
	})
	return nil
}

func (w *watermillPeer) schedule(ctx context.Context, first int64, due []time.Time) error {
	err := pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error { return w.db.expect(ctx, tx, first, due) })
	if err != nil {
		return err
	}
	messages := make([]*message.Message, len(due))
	for i, at := range due {
		messages[i] = message.NewMessage(watermill.NewShortUUID(), strconv.AppendInt(nil, first+int64(i), 10))
		delay.Message(messages[i], delay.Until(at))
	}
	return w.publisher.Publish(watermillTopic, messages...)
}

func (w *watermillPeer) stop() {
	for _, s := range w.subscribers {
		_ = s.Close() // measured by then
	}
	w.working.Wait()
}
