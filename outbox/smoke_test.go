package outbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/outbox"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	pool := pgtest.New(t)
	l := pgtest.Open(t, pool)
	s := outbox.DefaultSchema
	sched := func(id string, d time.Duration) outbox.Scheduled {
		var got outbox.Scheduled
		require.NoError(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
			got, err = s.ScheduleIn(ctx, tx, "close", id, d, map[string]int{"a": 1})
			return err
		}))
		return got
	}
	require.Equal(t, outbox.Created, sched("1", time.Second))
	require.Equal(t, outbox.Moved, sched("1", -time.Second))
	require.Equal(t, outbox.Created, sched("2", 900*time.Millisecond))
	b, err := l.Claim(ctx, []bide.Window{{Level: 1, From: 0, To: time.Second, Limit: 10}, {Level: 2, From: time.Second, To: 2 * time.Second, Limit: 10}})
	require.NoError(t, err)
	require.Len(t, b.Tasks, 1)
	require.NoError(t, l.Settle(ctx, b.ID, []int64{b.Tasks[0].TaskID}))
	tasks, now, err := l.Peek(ctx, []int64{1, 2, 3})
	require.NoError(t, err)
	t.Log(tasks, now)
	e, err := l.LockDue(ctx, bide.Due{Types: []string{"close"}, Limit: 100})
	require.NoError(t, err)
	require.Len(t, e.Tasks, 1)
	require.NoError(t, e.Limit(ctx))
	require.NoError(t, e.Finish(ctx, bide.ViaSweep, []outbox.Verdict{{TaskID: e.Tasks[0].ID, Result: bide.Done}}))
	e, err = l.Lock(ctx, []int64{2}, true)
	require.NoError(t, err)
	require.Empty(t, e.Tasks)
	require.NoError(t, e.Abort(ctx))
	_, err = l.Retry(ctx, []int64{2}, []string{"x"}, outbox.Backoff{MaxAttempts: 3, First: time.Second, Most: time.Minute})
	require.NoError(t, err)
	_, ok, err := l.Reclaim(ctx, 2, 3)
	require.NoError(t, err)
	require.False(t, ok)
	_, err = l.HonourRequests(ctx)
	require.NoError(t, err)
	_, err = l.Recover(ctx, time.Second)
	require.NoError(t, err)
	_, err = l.GiveBack(ctx, []int64{2}, []time.Time{b.Now})
	require.NoError(t, err)
	require.NoError(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		c, err := s.Cancel(ctx, tx, "close", "2")
		require.NoError(t, err)
		require.Equal(t, outbox.ChangeDone, c)
		m, err := s.CancelAll(ctx, tx, "2")
		require.NoError(t, err)
		require.Empty(t, m)
		c, err = s.Reschedule(ctx, tx, "close", "2", time.Now())
		require.Equal(t, outbox.ChangeTooLate, c)
		return err
	}))
}

func TestSmokeOperate(t *testing.T) {
	ctx := context.Background()
	pool := pgtest.New(t)
	l := pgtest.Open(t, pool)
	_, err := l.Find(ctx, outbox.Filter{Limit: 10})
	require.NoError(t, err)
	_, err = l.Requeue(ctx, outbox.Filter{})
	require.NoError(t, err)
	a, err := l.Audit(ctx)
	require.NoError(t, err)
	t.Log(a)
	d, err := l.Diagnose(ctx)
	require.NoError(t, err)
	t.Log(d)
	require.NoError(t, l.KeepHouse(ctx, 24*time.Hour))
	_, err = l.Counts(ctx)
	require.NoError(t, err)
	_, err = l.OldestOverdue(ctx)
	require.NoError(t, err)
	_, _, err = l.Overdue(ctx, bide.Due{Types: []string{"a"}, Limit: 10})
	require.NoError(t, err)
}
