package execute_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/execute"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/internal/worker"
	"github.com/bide-mq/bide/outbox"
)

// setup is a ledger with due tasks, whose biz_ids tell the handler what to do.
type setup struct {
	*execute.Executor
	pool *pgxpool.Pool
	// ids are the tasks', by biz_id.
	ids map[string]int64
	// calls are the handler's, each a list of biz_ids.
	calls [][]string
}

// newSetup makes due tasks of the type "act" and, before a slash, of others, for
// handlers with batches of two. An execution may take its time, for the sake of
// slow machines.
func newSetup(t *testing.T, bizIDs ...string) *setup {
	t.Helper()
	s := &setup{pool: pgtest.New(t), ids: map[string]int64{}}
	_, err := s.pool.Exec(t.Context(), `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = %L', current_database(), '20s');
	END $$`)
	require.NoError(t, err)
	s.pool.Reset()
	handlers := map[string]handler.Handler{}
	for i, bizID := range bizIDs {
		bizType, _, other := strings.Cut(bizID, "/")
		if !other {
			bizType = "act"
		}
		handlers[bizType] = handler.InBatches(2, s.act)
		var id int64
		require.NoError(t, s.pool.QueryRow(t.Context(),
			"INSERT INTO bide.delay_task (biz_type, biz_id, fire_at) VALUES ($1, $2, now() - interval '1 min' + $3 * interval '1 ms') RETURNING id",
			bizType, bizID, i).Scan(&id))
		s.ids[bizID] = id
	}
	backoff := outbox.Backoff{MaxAttempts: 2, First: time.Second, Most: time.Minute}
	s.Executor = execute.New(pgtest.Open(t, s.pool), handlers, backoff)
	return s
}

// act does what the tasks' biz_ids say.
func (s *setup) act(ctx context.Context, tx pgx.Tx, tasks []bide.Task) (results []handler.Result, err error) {
	var call []string
	for _, task := range tasks {
		call = append(call, task.BizID)
		result := handler.Result{Verdict: handler.Done}
		_, order, _ := strings.Cut(task.BizID, "/")
		switch cmp.Or(order, task.BizID) {
		case "skip":
			result = handler.Result{Verdict: handler.Skipped, Reason: "paid"}
		case "lock":
			result.Verdict = handler.Locked
		case "retry":
			result = handler.Result{Verdict: handler.Retry, Reason: "not yet"}
		case "panic":
			panic("out of range")
		case "mumble":
			return nil, nil
		case "own":
			return nil, errors.New("own")
		case "divide":
			_, err = tx.Exec(ctx, "SELECT 1 / 0")
		case "die":
			_, err = tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		}
		results = append(results, result)
	}
	s.calls = append(s.calls, call)
	return results, err
}

func (s *setup) all() (ids []int64) {
	for _, id := range s.ids {
		ids = append(ids, id)
	}
	return ids
}

// query returns rows of one text column.
func (s *setup) query(t *testing.T, sql string) []string {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), sql)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return list
}

const (
	live    = "SELECT biz_id || ' ' || status || ' ' || attempts FROM bide.delay_task ORDER BY biz_id"
	history = "SELECT biz_id || ' ' || result || ' ' || via || ' ' || coalesce(last_error, '') FROM bide.delay_task_history ORDER BY biz_id"
)

func bizIDs[T any](list []T, task func(T) bide.Task) (ids []string) {
	for _, element := range list {
		ids = append(ids, task(element).BizID)
	}
	return ids
}

func self(t bide.Task) bide.Task { return t }

func TestEachVerdictHasItsEnd(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "do", "skip", "lock", "retry")
	report, err := s.Execute(t.Context(), s.all(), worker.Mode{Via: bide.ViaBroker})
	require.NoError(t, err)
	require.Equal(t, []string{"do", "skip"}, bizIDs(report.Finished, func(f worker.Finished) bide.Task { return f.Task }))
	require.Equal(t, []string{"lock"}, bizIDs(report.Busy, self))
	require.Equal(t, []string{"retry"}, bizIDs(report.Failed, func(f worker.Failure) bide.Task { return f.Task }))
	require.Equal(t, "not yet", report.Failed[0].Reason)
	require.Equal(t, []string{"do DONE broker ", "skip SKIPPED broker paid"}, s.query(t, history))
	require.Equal(t, []string{"lock WAITING 0", "retry WAITING 0"}, s.query(t, live))
	require.WithinDuration(t, time.Now(), report.Now, time.Minute)
	require.Equal(t, 4, report.Waiting)
}

func TestASweepIsSplitByTypeAndBatch(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "a/1", "b/1", "a/2", "a/3", "c/1")
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, s.Types())
	report, err := s.Sweep(t.Context(), bide.Due{Types: []string{"a", "b"}, Limit: 100})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"a/1", "a/2"}, {"a/3"}, {"b/1"}}, s.calls)
	require.Len(t, report.Finished, 4)
	require.Positive(t, report.Scan)
	require.Equal(t, []string{"c/1 WAITING 0"}, s.query(t, live))
}

func TestOverdueListsAndLeaves(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "1", "2", "3")
	report, err := s.Overdue(t.Context(), bide.Due{Types: []string{"act"}, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []string{"1 WAITING 0", "2 WAITING 0", "3 WAITING 0"}, s.query(t, live))
	require.Len(t, report.Overdue, 2)
	require.Equal(t, s.ids["1"], report.Overdue[0].ID)
	require.Equal(t, 2, report.Waiting)
	require.Empty(t, s.calls)
}

// A failure takes the whole batch back, says whose fault it was and gives the
// connection back. Only a session that died leaves its journal.
func TestAFailureTakesAllBack(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "a/do", "a/panic", "b/do", "b/mumble", "c/do", "c/own", "d/do", "d/divide", "e/do", "e/die")
	for bizType, says := range map[string]string{
		"a": "handler a panicked: out of range", "b": "handler b gave 0 results for 2 tasks", "c": "own", "d": "division by zero",
		"e": worker.ErrLost.Error(),
	} {
		_, err := s.Sweep(t.Context(), bide.Due{Types: []string{bizType}, Limit: 100})
		require.ErrorContains(t, err, says)
		require.Equal(t, bizType == "e", errors.Is(err, worker.ErrLost))
		require.NotErrorIs(t, err, worker.ErrUnavailable)
		require.NotErrorIs(t, err, worker.ErrContended)
		var batch *worker.FailedBatch
		require.ErrorAs(t, err, &batch)
		require.Len(t, batch.Tasks, 2)
	}
	require.Empty(t, s.query(t, history))
	require.Len(t, s.query(t, live), 10)
	require.Len(t, s.query(t, "SELECT id::text FROM bide.sweep_batch"), 1)
	require.Eventually(t, func() bool { return s.pool.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond)
}

func TestWithoutADatabaseNothingHappened(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "1")
	ids := s.all()
	s.pool.Close()
	due := bide.Due{Types: []string{"act"}, Limit: 1}
	_, execute := s.Execute(t.Context(), ids, worker.Mode{Via: bide.ViaBroker})
	_, sweep := s.Sweep(t.Context(), due)
	_, overdue := s.Overdue(t.Context(), due)
	for _, err := range []error{execute, sweep, overdue} {
		require.ErrorIs(t, err, worker.ErrUnavailable)
	}
}

func TestRetryPutsOffAndGivesUp(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "1")
	failures := []worker.Failure{{Task: bide.Task{ID: s.ids["1"]}, Reason: "no luck"}}
	ended, err := s.Retry(t.Context(), failures)
	require.NoError(t, err)
	require.Equal(t, []bide.Ended{{ID: s.ids["1"], BizType: "act", BizID: "1", State: bide.Waiting, Attempts: 1, LastError: "no luck"}}, ended)
	_, err = s.pool.Exec(t.Context(), "UPDATE bide.delay_task SET retry_at = now()")
	require.NoError(t, err)
	ended, err = s.Retry(t.Context(), failures)
	require.NoError(t, err)
	require.Equal(t, bide.Failed, ended[0].State)
}

// A suspect is left out of a batch and runs in a trial, after it was recorded.
// The third death is the last: once unrecorded, then twice alone.
func TestSuspectsRunInATrial(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "innocent", "suspect", "killer")
	reclaim := func(bizID string) (bide.State, bool) {
		ended, ok, err := s.Reclaim(t.Context(), s.ids[bizID])
		require.NoError(t, err)
		return ended.State, ok
	}
	state, ok := reclaim("suspect")
	require.True(t, ok)
	require.Equal(t, bide.Waiting, state)
	_, ok = reclaim("suspect")
	require.False(t, ok, "as soon after the last trial")

	for _, want := range []bide.State{bide.Waiting, bide.Waiting, bide.Failed} {
		state, ok = reclaim("killer")
		require.True(t, ok)
		require.Equal(t, want, state)
		_, err := s.pool.Exec(t.Context(), "UPDATE bide.delay_task SET updated_at = now() - interval '1 h' WHERE biz_id = 'killer'")
		require.NoError(t, err)
	}

	report, err := s.Execute(t.Context(), s.all(), worker.Mode{Via: bide.ViaSweep})
	require.NoError(t, err)
	require.Equal(t, []string{"suspect"}, bizIDs(report.Suspects, self))
	require.Equal(t, [][]string{{"innocent"}}, s.calls)
	report, err = s.Execute(t.Context(), []int64{s.ids["suspect"]}, worker.Mode{Via: bide.ViaSweep, Trial: true})
	require.NoError(t, err)
	require.Len(t, report.Finished, 1)
}
