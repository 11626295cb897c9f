package outbox_test

import (
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// model is what the ledger should hold: its rules again, in the plainest form.
type model struct {
	live map[string]*modelTask // by biz_id
	// ended lists each key's endings, the last one last.
	ended map[string][]modelEnding
	// batches are in relays' hands.
	batches map[int64][]int64
	// dead are the tasks of executions that died.
	dead map[int64]bool
	// held are the tasks of the open execution, by biz_id.
	held map[string]bool
	// staged is what the open execution's handler scheduled over its own keys.
	staged map[string]*stage
}

type modelTask struct {
	id                        int64
	fireAt                    time.Time
	paused                    bool // by a retry, beyond the end of the test
	state                     bide.State
	sends, attempts, reclaims int
	requests                  []time.Time // zero to cancel
}

type modelEnding struct {
	id     int64
	fireAt time.Time
	result bide.Result
}

// stage is a schedule that is not committed yet.
type stage struct {
	at    time.Time
	moved bool
	// requests are those that the schedule has seen, and made void.
	requests int
}

func newModel() *model {
	return &model{
		live: map[string]*modelTask{}, ended: map[string][]modelEnding{}, batches: map[int64][]int64{},
		dead: map[int64]bool{}, held: map[string]bool{}, staged: map[string]*stage{},
	}
}

// restart gives a task another time and forgets its past.
func (t *modelTask) restart(at time.Time) {
	*t = modelTask{id: t.id, fireAt: at, state: bide.Waiting}
}

func (t *modelTask) due(now time.Time) bool {
	return (t.state == bide.Waiting || t.state == bide.Sent) && !t.paused && !t.fireAt.After(now)
}

func (m *model) hasFired(key string, at time.Time) bool {
	for _, e := range m.ended[key] {
		if e.fireAt.Equal(at) && e.result != bide.Cancelled {
			return true
		}
	}
	return false
}

func (m *model) end(key string, result bide.Result) {
	t := m.live[key]
	m.ended[key] = append(m.ended[key], modelEnding{t.id, t.fireAt, result})
	delete(m.live, key)
}

// schedule answers what the ledger should. Created leaves the id to be filled.
func (m *model) schedule(key string, at time.Time) outbox.Answer {
	t := m.live[key]
	switch {
	case m.hasFired(key, at):
		return outbox.Finished
	case t == nil:
		m.live[key] = &modelTask{fireAt: at, state: bide.Waiting}
		return outbox.Created
	case t.fireAt.Equal(at) && t.state != bide.Failed:
		t.requests = nil
		return outbox.Unchanged
	default:
		t.restart(at)
		return outbox.Moved
	}
}

// stage is schedule inside the open execution.
func (m *model) stage(key string, at time.Time) outbox.Answer {
	t, s := m.live[key], m.staged[key]
	if m.hasFired(key, at) {
		return outbox.Finished
	}
	if s == nil {
		s = &stage{at: t.fireAt}
		m.staged[key] = s
	}
	s.requests = len(t.requests)
	if s.at.Equal(at) {
		return outbox.Unchanged
	}
	s.at, s.moved = at, true
	return outbox.Moved
}

// finish commits the open execution with these results.
func (m *model) finish(results map[string]bide.Result) {
	for key := range m.held {
		t, s := m.live[key], m.staged[key]
		elsewhere := false
		if s != nil {
			t.requests = t.requests[s.requests:]
			elsewhere = !s.at.Equal(t.fireAt)
		}
		if result, ok := results[key]; ok && !elsewhere {
			m.end(key, result)
		} else if s != nil && s.moved {
			requests := t.requests
			t.restart(s.at)
			t.requests = requests
		}
	}
	m.letGo()
}

// busy reports whether a cancel or a reschedule of the key becomes a request.
func (m *model) busy(key string) bool {
	t := m.live[key]
	return t != nil && (m.held[key] || t.state == bide.Running)
}

func (m *model) cancel(key string) outbox.Answer {
	switch {
	case m.busy(key):
		m.live[key].requests = append(m.live[key].requests, time.Time{})
		return outbox.Requested
	case m.live[key] != nil:
		m.end(key, bide.Cancelled)
		return outbox.Cancelled
	case len(m.ended[key]) == 0:
		return outbox.NotFound
	case m.ended[key][len(m.ended[key])-1].result == bide.Cancelled:
		return outbox.Cancelled
	default:
		return outbox.TooLate
	}
}

func (m *model) reschedule(key string, at time.Time) outbox.Answer {
	t := m.live[key]
	switch {
	case m.busy(key):
		t.requests = append(t.requests, at)
		return outbox.Requested
	case t == nil && len(m.ended[key]) == 0:
		return outbox.NotFound
	case t == nil:
		return outbox.TooLate
	case t.fireAt.Equal(at) && t.state != bide.Failed:
		t.requests = nil
		return outbox.Unchanged
	default:
		t.restart(at)
		return outbox.Moved
	}
}

func (m *model) honour() {
	for key, t := range m.live {
		if len(t.requests) == 0 || m.busy(key) {
			continue
		}
		if last := t.requests[len(t.requests)-1]; last.IsZero() {
			m.end(key, bide.Cancelled)
		} else {
			t.restart(last)
		}
	}
}

// giveBack makes WAITING those of the tasks that are SENT and free.
func (m *model) giveBack(ids []int64) {
	for _, id := range ids {
		for key, t := range m.live {
			if t.id == id && t.state == bide.Sent && !m.held[key] {
				t.state = bide.Waiting
			}
		}
	}
}

// letGo ends the open execution.
func (m *model) letGo() {
	clear(m.held)
	clear(m.staged)
}
