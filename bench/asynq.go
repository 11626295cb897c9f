package main

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// asynqPeer is asynq on Redis. It looks for due tasks every 100 ms instead of
// 5 s and for work every 10 ms instead of 1 s, more often than its documentation
// recommends. It keeps due times as whole seconds, so tasks fire early.
type asynqPeer struct {
	db     *database
	client *asynq.Client
	server *asynq.Server
	inbox  *asynq.Inspector
	queue  string
}

const (
	asynqName   = "asynq"
	asynqEffect = "effect"
)

func (*asynqPeer) name() string { return asynqName }

func (a *asynqPeer) start(_ context.Context, db *database) error {
	redis, err := asynq.ParseRedisURI(os.Getenv("BIDE_TEST_REDIS_URL"))
	if err != nil {
		return err
	}
	a.db, a.queue = db, "bench-"+strconv.FormatInt(time.Now().UnixNano(), 36)
	a.client, a.inbox = asynq.NewClient(redis), asynq.NewInspector(redis)
	a.server = asynq.NewServer(redis, asynq.Config{
		Concurrency: 100, Queues: map[string]int{a.queue: 1}, LogLevel: asynq.FatalLevel,
		DelayedTaskCheckInterval: 100 * time.Millisecond, TaskCheckInterval: 10 * time.Millisecond,
	})
	return a.server.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		id, err := strconv.ParseInt(string(task.Payload()), 10, 64)
		if err != nil {
			return err
		}
		return a.db.effect(ctx, id)
	}))
}

// schedule enqueues one by one, as its client does, 32 at a time.
func (a *asynqPeer) schedule(ctx context.Context, first int64, due []time.Time) error {
	err := pgx.BeginFunc(ctx, a.db, func(tx pgx.Tx) error { return a.db.expect(ctx, tx, first, due) })
	if err != nil {
		return err
	}
	var enqueuing errgroup.Group
	enqueuing.SetLimit(32)
	for i, at := range due {
		enqueuing.Go(func() error {
			task := asynq.NewTask(asynqEffect, strconv.AppendInt(nil, first+int64(i), 10))
			_, err := a.client.EnqueueContext(ctx, task, asynq.ProcessAt(at), asynq.Queue(a.queue))
			return err
		})
	}
	return enqueuing.Wait()
}

func (a *asynqPeer) stop() {
	a.server.Shutdown()
	_ = a.inbox.DeleteQueue(a.queue, true)
	_ = a.inbox.Close()
	_ = a.client.Close()
}
