package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// relay claims and gives back whatever there is until stopped, and so keeps
// the rows as busy as a relay can.
func (f *fixture) relay(stop <-chan struct{}) error {
	all := []bide.Window{{Level: 1, From: 0, To: 2 * time.Hour, Limit: 100}}
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		batch, err := f.ledger.Claim(f.ctx, all)
		if err != nil {
			return err
		}
		if err := f.ledger.Settle(f.ctx, batch.ID, claimedIDs(batch)); err != nil {
			return err
		}
	}
}

// A relay that claims the task at the same time does not make a cancel lose.
func TestCancelsRaceTwoRelays(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const tasks, applications = 1200, 6
	f.putMany(tasks, time.Hour)
	stop := make(chan struct{})
	var relays, cancels errgroup.Group
	for range 2 {
		relays.Go(func() error { return f.relay(stop) })
	}
	answers := make([]outbox.Answer, tasks)
	for a := range applications {
		cancels.Go(func() (err error) {
			for i := a; i < tasks && err == nil; i += applications {
				answers[i], err = f.ledger.Cancel(f.ctx, closeOrder, fmt.Sprint(i+1))
			}
			return err
		})
	}
	require.NoError(t, cancels.Wait())
	close(stop)
	require.NoError(t, relays.Wait())

	counts := map[outbox.Answer]int{}
	for _, answer := range answers {
		counts[answer]++
	}
	t.Log(counts)
	// A machine that takes more than 100 ms to commit a claim makes a cancel
	// a request, which is honoured.
	require.Equal(t, tasks, counts[outbox.Cancelled]+counts[outbox.Requested], "%v", counts)
	require.Less(t, counts[outbox.Requested], tasks/20, "%v", counts)
	f.honour()
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.delay_task"))
	require.Equal(t, tasks, value[int](f, "SELECT count(DISTINCT id) FROM bide.delay_task_history WHERE result = 'CANCELLED'"))
}

// Payments cancel while workers execute: whatever the answer, it is kept.
func TestCancelsRaceExecutions(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const tasks, workers = 400, 2
	f.putMany(tasks, -time.Minute)
	var group errgroup.Group
	for range workers {
		group.Go(func() error {
			for {
				e, err := f.ledger.LockDue(f.ctx, bide.Due{Types: []string{closeOrder}, Limit: 20})
				if err != nil {
					return err
				}
				if len(e.Tasks) == 0 {
					return e.Abort(f.ctx)
				}
				if err := e.Finish(f.ctx, bide.ViaSweep, verdicts(e, bide.Done)); err != nil {
					return err
				}
			}
		})
	}
	answers := make([]outbox.Answer, tasks)
	group.Go(func() (err error) {
		for i := tasks - 1; i >= 0 && err == nil; i-- {
			answers[i], err = f.ledger.Cancel(f.ctx, closeOrder, fmt.Sprint(i+1))
		}
		return err
	})
	require.NoError(t, group.Wait())
	f.honour()
	counts := map[outbox.Answer]int{}
	for i, answer := range answers {
		counts[answer]++
		state := f.state(fmt.Sprint(i + 1))
		switch answer {
		case outbox.Cancelled:
			require.Equal(t, "CANCELLED", state)
		case outbox.TooLate:
			require.Equal(t, "DONE", state)
		default:
			require.Equal(t, outbox.Requested, answer)
		}
	}
	t.Log(counts)
	require.Zero(t, value[int](f, "SELECT count(*) FROM bide.delay_task"))
	require.Equal(t, tasks, value[int](f, "SELECT count(*) FROM bide.delay_task_history"), "each ended once")
}
