package outbox_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// machine does the same to a ledger and to the model.
type machine struct {
	*model
	f    *fixture
	base time.Time
	open *outbox.Execution
}

// Whatever applications, relays and workers do in whatever order, the ledger
// does what the model does: one live task per key, nothing lost, nothing early,
// ends that are final.
func TestTheLedgerFollowsItsModel(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*hung)
	defer cancel()
	f.ctx = ctx
	rapid.Check(t, func(t *rapid.T) {
		for _, table := range []string{"delay_task", "delay_task_history", "delay_task_request", "relay_batch", "sweep_batch"} {
			f.exec("DELETE FROM bide." + table)
		}
		m := &machine{model: newModel(), f: f, base: f.now()}
		defer func() {
			if m.open != nil {
				_ = m.open.Abort(ctx)
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"schedule": m.Schedule, "cancel": m.Cancel, "reschedule": m.Reschedule, "honour": m.Honour,
			"claim": m.Claim, "settle": m.Settle, "relay dies": m.RelayDies, "give back": m.GiveBack,
			"lock": m.Lock, "handler schedules": m.HandlerSchedules, "finish": m.Finish, "abort": m.Abort, "worker dies": m.WorkerDies,
			"retry": m.Retry, "reclaim": m.Reclaim, "requeue": m.Requeue, "run": m.Run, "lease ends": m.LeaseEnds,
			"": m.Check,
		})
	})
}

func drawKey(t *rapid.T) string { return rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "key") }

// drawTime is well before or well after the test.
func (m *machine) drawTime(t *rapid.T) time.Time {
	return m.base.Add(rapid.SampledFrom([]time.Duration{-2 * time.Hour, -time.Hour, time.Hour, 2 * time.Hour}).Draw(t, "time"))
}

// pick draws a live task that satisfies the condition.
func (m *machine) pick(t *rapid.T, what string, suits func(key string, task *modelTask) bool) (string, *modelTask) {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(m.live)), func(key string) bool { return !suits(key, m.live[key]) })
	if len(keys) == 0 {
		t.Skip("no task to " + what)
	}
	key := rapid.SampledFrom(keys).Draw(t, what)
	return key, m.live[key]
}

func (m *machine) free(key string, _ *modelTask) bool { return !m.held[key] }

func (m *machine) Schedule(t *rapid.T) {
	key, at := drawKey(t), m.drawTime(t)
	if m.held[key] {
		t.Skip("it would wait")
	}
	got, err := m.f.schedule(key, at, nil)
	require.NoError(t, err)
	require.Equal(t, m.schedule(key, at), got)
	if got == outbox.Created {
		m.live[key].id = value[int64](m.f, "SELECT id FROM bide.delay_task WHERE biz_id = $1", key)
	}
}

func (m *machine) Cancel(t *rapid.T) {
	key := drawKey(t)
	require.Equal(t, m.cancel(key), m.f.cancel(key))
}

func (m *machine) Reschedule(t *rapid.T) {
	key, at := drawKey(t), m.drawTime(t)
	require.Equal(t, m.reschedule(key, at), m.f.reschedule(key, at))
}

func (m *machine) Honour(*rapid.T) {
	m.f.honour()
	m.honour()
}

func (m *machine) Claim(t *rapid.T) {
	batch := m.f.claim(bide.Window{Level: 1, From: 0, To: 3 * time.Hour, Limit: 10})
	want := []int64{}
	for _, task := range m.live {
		if task.state == bide.Waiting && (task.paused || task.fireAt.After(m.base)) {
			task.state = bide.Sent
			task.sends++
			want = append(want, task.id)
		}
	}
	slices.Sort(want)
	require.Equal(t, want, claimedIDs(batch))
	if len(want) > 0 {
		m.batches[batch.ID] = want
	}
}

func (m *machine) drawBatch(t *rapid.T) int64 {
	if len(m.batches) == 0 {
		t.Skip("no batch")
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.batches))).Draw(t, "batch")
	return id
}

func (m *machine) Settle(t *rapid.T) {
	id := m.drawBatch(t)
	back := slices.DeleteFunc(slices.Clone(m.batches[id]), func(int64) bool { return rapid.Bool().Draw(t, "confirmed") })
	require.NoError(t, m.f.ledger.Settle(m.f.ctx, id, back))
	require.NoError(t, m.f.ledger.Settle(m.f.ctx, id, back), "again, it does nothing")
	m.giveBack(back)
	delete(m.batches, id)
}

func (m *machine) RelayDies(t *rapid.T) {
	id := m.drawBatch(t)
	m.f.age(bide.Batch{ID: id})
	_, err := m.f.ledger.Recover(m.f.ctx, time.Minute)
	require.NoError(t, err)
	m.giveBack(m.batches[id])
	delete(m.batches, id)
}

func (m *machine) GiveBack(t *rapid.T) {
	_, task := m.pick(t, "give back", func(_ string, task *modelTask) bool { return !task.paused })
	stale := rapid.Bool().Draw(t, "stale message")
	at := task.fireAt
	if stale {
		at = at.Add(time.Microsecond)
	}
	_, err := m.f.ledger.GiveBack(m.f.ctx, []int64{task.id}, []time.Time{at})
	require.NoError(t, err)
	if !stale {
		m.giveBack([]int64{task.id})
	}
}

func (m *machine) Lock(t *rapid.T) {
	if m.open != nil {
		t.Skip("one execution at a time")
	}
	m.open = m.f.lockDue(due())
	tasks, suspects := []int64{}, []int64{}
	for key, task := range m.live {
		if !task.due(m.base) || len(task.requests) > 0 {
			continue
		}
		m.held[key] = true
		if task.reclaims > 0 || m.dead[task.id] {
			suspects = append(suspects, task.id)
		} else {
			tasks = append(tasks, task.id)
		}
	}
	require.ElementsMatch(t, tasks, taskIDs(m.open.Tasks))
	require.ElementsMatch(t, suspects, taskIDs(m.open.Suspects))
}

// executing returns the open execution.
func (m *machine) executing(t *rapid.T) *outbox.Execution {
	if m.open == nil {
		t.Skip("no execution")
	}
	return m.open
}

func (m *machine) HandlerSchedules(t *rapid.T) {
	e := m.executing(t)
	key, _ := m.pick(t, "schedule again", func(key string, _ *modelTask) bool { return m.held[key] })
	at := m.drawTime(t)
	var got outbox.Answer
	require.NoError(t, e.Conn().QueryRow(m.f.ctx, "SELECT bide.schedule($1, $2, $3)", closeOrder, key, at).Scan(&got))
	require.Equal(t, m.stage(key, at), got)
}

func (m *machine) Finish(t *rapid.T) {
	e := m.executing(t)
	var list []outbox.Verdict
	results := map[string]bide.Result{}
	for _, task := range e.Tasks {
		result := rapid.SampledFrom([]bide.Result{bide.Done, bide.Skipped, ""}).Draw(t, "verdict")
		if result != "" {
			list = append(list, outbox.Verdict{TaskID: task.ID, Result: result})
			results[task.BizID] = result
		}
	}
	require.NoError(t, e.Finish(m.f.ctx, bide.ViaSweep, list))
	m.open = nil
	m.finish(results)
}

func (m *machine) Abort(t *rapid.T) {
	require.NoError(t, m.executing(t).Abort(m.f.ctx))
	m.open = nil
	m.letGo()
}

func (m *machine) WorkerDies(t *rapid.T) {
	e := m.executing(t)
	ids := taskIDs(e.Tasks)
	m.f.die(e)
	m.open = nil
	for _, id := range ids {
		m.dead[id] = true
	}
	m.letGo()
}

func (m *machine) Retry(t *rapid.T) {
	_, task := m.pick(t, "retry", m.free)
	was := task.due(m.base)
	ended, err := m.f.ledger.Retry(m.f.ctx, []int64{task.id}, []string{"no"}, outbox.Backoff{MaxAttempts: 3, First: time.Hour, Most: time.Hour})
	require.NoError(t, err)
	require.Equal(t, was, len(ended) == 1)
	if was {
		task.attempts, task.reclaims, task.state, task.paused = task.attempts+1, 0, bide.Waiting, true
		if task.attempts == 3 {
			task.state = bide.Failed
		}
	}
}

func (m *machine) Reclaim(t *rapid.T) {
	_, task := m.pick(t, "reclaim", m.free)
	was := task.due(m.base)
	m.f.exec("UPDATE bide.delay_task SET updated_at = updated_at - interval '1 minute' WHERE id = $1", task.id) // not too soon after the last
	_, ok, err := m.f.ledger.Reclaim(m.f.ctx, task.id, 3)
	require.NoError(t, err)
	require.Equal(t, was, ok)
	if was {
		delete(m.dead, task.id)
		task.reclaims++
		if task.reclaims == 3 {
			task.state = bide.Failed
		}
	}
}

func (m *machine) Requeue(t *rapid.T) {
	key, task := m.pick(t, "requeue", func(_ string, task *modelTask) bool { return task.state == bide.Failed })
	n, err := m.f.ledger.Requeue(m.f.ctx, outbox.Filter{BizID: key})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	task.state, task.attempts, task.reclaims, task.paused = bide.Waiting, 0, 0, false
}

// Run leases a task as a worker does that acts outside the database.
func (m *machine) Run(t *rapid.T) {
	_, task := m.pick(t, "run", func(key string, task *modelTask) bool { return task.due(m.base) && m.free(key, task) })
	m.f.exec("UPDATE bide.delay_task SET status = 'RUNNING', claim_token = gen_random_uuid(), lease_until = now() WHERE id = $1", task.id)
	task.state = bide.Running
}

func (m *machine) LeaseEnds(t *rapid.T) {
	_, task := m.pick(t, "end the lease of", func(_ string, task *modelTask) bool { return task.state == bide.Running })
	m.f.exec("UPDATE bide.delay_task SET status = 'WAITING', claim_token = NULL, lease_until = NULL WHERE id = $1", task.id)
	task.state = bide.Waiting
}

// Check compares everything that is committed.
func (m *machine) Check(t *rapid.T) {
	type line struct {
		ID                        int64
		BizID, State              string
		FireAt                    int64
		Sends, Attempts, Reclaims int
	}
	read := func(sql string) []line {
		rows, err := m.f.pool.Query(m.f.ctx, sql)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[line])
		require.NoError(t, err)
		return lines
	}
	var live, ended []line
	for _, key := range slices.Sorted(maps.Keys(m.live)) {
		task := m.live[key]
		live = append(live, line{task.id, key, string(task.state), task.fireAt.UnixMicro(), task.sends, task.attempts, task.reclaims})
	}
	for _, key := range slices.Sorted(maps.Keys(m.ended)) {
		for _, e := range m.ended[key] {
			ended = append(ended, line{ID: e.id, BizID: key, State: string(e.result), FireAt: e.fireAt.UnixMicro()})
		}
	}
	const micros = "(extract(epoch FROM fire_at) * 1000000)::bigint"
	require.ElementsMatch(t, live, read("SELECT id, biz_id, status::text, "+micros+", sends, attempts, reclaims FROM bide.delay_task"))
	require.ElementsMatch(t, ended, read("SELECT id, biz_id, result::text, "+micros+", 0, 0, 0 FROM bide.delay_task_history"))
	require.Zero(t, value[int](m.f, "SELECT count(*) FROM bide.delay_task_history WHERE finished_at < fire_at AND result <> 'CANCELLED'"), "none early")
	require.ElementsMatch(t, slices.Collect(maps.Keys(m.batches)), values[int64](m.f, "SELECT id FROM bide.relay_batch"))
}
