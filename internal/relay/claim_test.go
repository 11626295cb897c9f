package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
)

// Each task is handed over once, in its window: it arrives before its time, by
// lead at the least, and by lead and slack at the most.
func TestEachTaskTravelsByItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(0, 0)
		r := begin(t, Config{}, b, newCarrier())
		for in := 10 * time.Millisecond; in < 25*time.Second; in += 97 * time.Millisecond {
			b.add(in)
		}
		pass(25 * time.Second)
		for _, s := range r.carried(false) {
			early := s.Message.RunAt.Sub(s.Message.DeliverAt)
			require.GreaterOrEqual(t, early, lead)
			require.Less(t, early, lead+slack)
			require.WithinDuration(t, s.at.Add([]time.Duration{0, time.Second, 10 * time.Second}[s.Level]), s.Message.DeliverAt, 0)
		}
		require.Equal(t, len(b.rows)-2, r.sent(), "what is due in 10 ms, and was not seen before, is the sweep's")
		require.Len(t, r.carried(false), r.sent())
		require.Equal(t, r.sent(), r.published[bide.Confirmed])
		require.Equal(t, r.sent(), r.claimed)
		require.Zero(t, r.journalled())
	})
}

func TestTimersAreAskedForWholeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(1, 90*time.Minute+123*time.Millisecond)
		c := newCarrier()
		c.caps = bide.Capabilities{Timers: true, Horizon: 2 * time.Hour, Lead: lead, Window: 256}
		r := begin(t, Config{}, b, c)
		sends := r.carried(false)
		require.Len(t, sends, 1)
		require.Equal(t, bide.LevelTimer, sends[0].Level)
		require.Zero(t, sends[0].Message.DeliverAt.Nanosecond())
	})
}

func TestNothingIsClaimedWithoutASession(t *testing.T) {
	for _, state := range []bide.SessionState{bide.SessionDown, bide.SessionBlocked} {
		synctest.Test(t, func(t *testing.T) {
			b, c := newBook(5, 5*time.Second), newCarrier()
			c.is(state)
			r := begin(t, Config{}, b, c)
			pass(time.Second)
			require.Empty(t, r.of("claim"), state)
			r.is(bide.SessionUp)
			pass(poll)
			require.Len(t, r.of("claim"), 1)
		})
	}
}

func TestTheSessionMayEndInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.faulty(1, bide.ErrSessionDown)
		r := begin(t, Config{}, newBook(5, 1300*time.Millisecond), c)
		require.Len(t, r.carried(false), 5)
		require.Zero(t, r.sent())
		require.Zero(t, r.journalled())
		require.False(t, r.quarantined(1), "it is not the level's fault")
	})
}

func TestAFullClaimIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, Config{}, newBook(1000, 1200*time.Millisecond), newCarrier())
		claims := len(r.of("claim")) // 4, and more where one came before the level had room again
		require.GreaterOrEqual(t, claims, 4)
		require.Equal(t, 1000, r.sent())
		pass(poll)
		require.Len(t, r.of("claim"), claims+1)
	})
}

// Four windows are in hand, and no more. The next is claimed as soon as there is
// room.
func TestClaimsGoOnWhileOthersArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.takes = 30 * time.Millisecond
		r := begin(t, Config{}, newBook(2400, 1340*time.Millisecond), c)
		pass(29 * time.Millisecond)
		require.Len(t, r.carried(false), 1024)
		pass(time.Millisecond)
		require.Len(t, r.carried(false), 2048, "long before the next poll")
		pass(100 * time.Millisecond)
		require.Equal(t, 2400, r.sent())
		require.Equal(t, 4*threeLevels.Window, r.atMost)
	})
}

// A level without room takes nothing from the others.
func TestALevelWithoutRoomIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarrier()
		c.takes = time.Hour
		r := begin(t, Config{}, newBook(2000, 1340*time.Millisecond), c)
		pass(poll)
		claims := r.of("claim")
		require.Equal(t, []int{0, 2}, levelsOf(claims[len(claims)-1]))
		require.Equal(t, 1024, r.sent())
	})
}

func levelsOf(c call) (levels []int) {
	for _, w := range c.windows {
		levels = append(levels, w.Level)
	}
	return levels
}

// The answer to a claim was on its way for so long that the window is over: a
// message sent at its level would be late. The next lower level is not.
func TestATaskThatSlipsBelowItsWindowWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(1, 1150*time.Millisecond)
		b.takes = 60 * time.Millisecond
		r := begin(t, Config{}, b, newCarrier())
		pass(1500 * time.Millisecond)
		sends := r.carried(false)
		require.Len(t, sends, 1)
		require.Equal(t, bide.LevelNone, sends[0].Level)
		require.True(t, sends[0].at.Before(sends[0].Message.RunAt))
		require.Len(t, r.of("settle"), 2)
	})
}

func TestAClaimThatFailsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(3, 1200*time.Millisecond)
		b.fail("claim", context.DeadlineExceeded)
		r := begin(t, Config{}, b, newCarrier())
		pass(50 * time.Millisecond)
		b.fail("claim", nil)
		pass(50 * time.Millisecond)
		require.Equal(t, 3, r.sent())
		require.Len(t, r.of("claim"), 2)
	})
}
