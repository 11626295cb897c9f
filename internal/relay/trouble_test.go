package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

func TestWhatIsRefusedGoesBackAndIsNotHurried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.faulty(1, bide.ErrRefused)
		r := begin(t, Config{}, newBook(1000, 1200*time.Millisecond), c)
		pass(5 * time.Millisecond)
		before := len(r.of("claim"))
		require.LessOrEqual(t, before, 4)
		pass(poll)
		require.Len(t, r.of("claim"), before+1, "a full queue is not hammered")
		require.Zero(t, r.sent())
		require.NotZero(t, r.published[bide.Refused])
		require.False(t, r.quarantined(1))
		c.faulty(1, nil)
		pass(250 * time.Millisecond)
		require.Zero(t, r.sent(), "the window is over")
		pass(800 * time.Millisecond)
		require.Equal(t, 1000, r.sent(), "by the next lower level")
	})
}

// A level that does not confirm, or has lost its queue, is closed until a probe
// comes through. Its tasks take the next lower level, and the others go on.
func TestQuarantine(t *testing.T) {
	for name, fault := range map[string]error{"silent": bide.ErrConfirmTimeout, "without a queue": bide.ErrUnroutable} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCarrier()
				c.faulty(2, fault)
				b := newBook(3, 10400*time.Millisecond)
				r := begin(t, Config{}, b, c)
				pass(poll)
				require.True(t, r.quarantined(2))
				require.Zero(t, r.sent())
				pass(poll)
				claims := r.of("claim")
				require.Equal(t, []int{0, 1}, levelsOf(claims[len(claims)-1]))
				b.add(1250 * time.Millisecond)
				pass(poll)
				require.Equal(t, 1, r.sent(), "by another level")

				pass(5 * time.Second)
				require.Len(t, r.carried(true), 5, "a probe each second")
				require.Equal(t, 2, r.carried(true)[0].Level)
				c.faulty(2, nil)
				pass(time.Second)
				require.False(t, r.quarantined(2))
				b.add(10250 * time.Millisecond)
				pass(poll)
				require.Equal(t, 2, r.sent(), "by the level that is open again")
				pass(5 * time.Second)
				require.Equal(t, 5, r.sent(), "by the next lower level")
				require.Len(t, r.carried(true), 6)
			})
		})
	}
}

// One refusal among many silences is no reason to go on with a silent level.
func TestAnySilenceClosesTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.fault = func(s bide.Send) error {
			if s.Message.TaskID == 1 {
				return bide.ErrRefused
			}
			return bide.ErrConfirmTimeout
		}
		r := begin(t, Config{}, newBook(3, 10200*time.Millisecond), c)
		require.True(t, r.quarantined(2))
	})
}

func TestNoProbeWithoutASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.faulty(2, bide.ErrConfirmTimeout)
		r := begin(t, Config{}, newBook(1, 10400*time.Millisecond), c)
		pass(poll)
		require.True(t, r.quarantined(2))
		c.faulty(2, nil)
		c.is(bide.SessionDown)
		pass(10 * time.Second)
		require.Empty(t, r.carried(true))
		c.is(bide.SessionUp)
		pass(time.Second)
		require.False(t, r.quarantined(2))
	})
}

// All levels closed: nothing to claim, until one opens.
func TestAllLevelsMayBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.fault = func(bide.Send) error { return bide.ErrConfirmTimeout }
		b := newBook(1, 10200*time.Millisecond)
		b.add(1200 * time.Millisecond)
		b.add(200 * time.Millisecond)
		r := begin(t, Config{}, b, c)
		pass(900 * time.Millisecond)
		require.Len(t, r.of("claim"), 1)
		c.faulty(0, nil)
		pass(2 * time.Second)
		require.Greater(t, len(r.of("claim")), 10)
	})
}

func TestSettleIsTriedUntilTheLeaseIsNearlyOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(3, 10200*time.Millisecond)
		b.fail("settle", bide.ErrSessionDown)
		r := begin(t, Config{Lease: 10 * time.Second}, b, newCarrier())
		pass(time.Second)
		require.Len(t, r.of("settle"), 4, "at 0, 100, 300 and 700 ms")
		b.fail("settle", nil)
		pass(time.Second)
		require.Zero(t, r.journalled())
		require.Equal(t, 3, r.sent())
	})
}

// After the lease, another relay may have the batch: this one lets go.
func TestABatchIsNotSettledAfterItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(3, 10200*time.Millisecond)
		b.fail("settle", bide.ErrSessionDown)
		r := begin(t, Config{Lease: 2 * time.Second}, b, newCarrier())
		pass(5 * time.Second)
		require.Len(t, r.of("settle"), 5, "the last after 1.5 s")
		require.Equal(t, 3, r.recovered, "by itself, which is the other relay, too")
	})
}

func TestTasksOfDeadRelaysAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(3, 25*time.Second)
		batch, err := b.claim(t.Context(), []bide.Window{{Level: 2, To: time.Hour, Limit: 9}}) // and it died
		require.NoError(t, err)
		require.Len(t, batch.Tasks, 3)
		b.fail("recover", bide.ErrSessionDown)
		r := begin(t, Config{Lease: 10 * time.Second}, b, newCarrier())
		pass(time.Second)
		b.fail("recover", nil)
		pass(12 * time.Second)
		require.Equal(t, 3, r.recovered)
		pass(5 * time.Second)
		require.Len(t, r.carried(false), 3, "and sent again")
		require.Len(t, r.of("recover"), 8, "four times a lease")
	})
}

func TestStopLetsBatchesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.takes = 2 * time.Second
		b := newBook(3, 10200*time.Millisecond)
		r := begin(t, Config{}, b, c)
		b.add(10300 * time.Millisecond)
		begun := time.Now()
		require.NoError(t, r.stop())
		require.Equal(t, 2*time.Second, time.Since(begun))
		require.Equal(t, 3, r.sent(), "and claims no more")
		require.Zero(t, r.journalled())
	})
}

// A claim that the stop finds under way is not torn off: the server may have
// committed it.
func TestStopLetsAClaimEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(3, 10300*time.Millisecond)
		b.takes = 50 * time.Millisecond
		r := begin(t, Config{}, b, newCarrier())
		require.NoError(t, r.stop())
		require.Equal(t, 3, r.sent())
		require.Len(t, r.carried(false), 3)
		require.Zero(t, r.journalled())
	})
}

func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.takes = time.Hour
		r := begin(t, Config{Drain: 3 * time.Second}, newBook(3, 10200*time.Millisecond), c)
		begun := time.Now()
		require.NoError(t, r.stop())
		require.Equal(t, 3*time.Second, time.Since(begun))
		require.Equal(t, 1, r.journalled(), "the journal stands for the batch")
	})
}

// A publish gives up well before its batch's lease ends.
func TestPublishIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.takes = time.Hour
		r := begin(t, Config{Lease: 10 * time.Second}, newBook(3, 10200*time.Millisecond), c)
		pass(5*time.Second - 1)
		require.Equal(t, 3, r.sent())
		pass(1)
		require.Zero(t, r.sent())
		require.Zero(t, r.recovered)
	})
}
