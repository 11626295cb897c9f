package levels

import (
	"math"
	"time"

	"github.com/bide-mq/bide"
)

func validate(caps bide.Capabilities, slack time.Duration) error {
	var f faults
	if caps.Window <= 0 {
		f.addf("publish window %d: want more than 0 messages", caps.Window)
	}
	if slack <= 0 {
		f.addf("slack %s: want more than 0", slack)
	}
	if caps.Lead < 0 {
		f.addf("lead %s: want 0 or more", caps.Lead)
	}
	switch {
	case caps.Timers && len(caps.Delays) > 0:
		f.addf("timers and %d fixed delays: want one of the two", len(caps.Delays))
	case caps.Timers:
		validateHold(&f, caps.Lead, slack, MaxTimerHold)
		validateHorizon(&f, caps.Horizon, slack)
	case len(caps.Delays) > 0:
		validateHold(&f, caps.Lead, slack, MaxLevelHold)
		validateDelays(&f, caps.Delays, slack)
	default:
		f.addf("neither timers nor fixed delays: want one of the two")
	}
	return f.err()
}

// validateHold compares by subtraction, which no two valid durations overflow.
func validateHold(f *faults, lead, slack, most time.Duration) {
	if lead >= 0 && slack > 0 && lead > most-slack {
		f.addf("lead %s and slack %s: want at most %s together, the longest a worker holds", lead, slack, most)
	}
}

func validateHorizon(f *faults, horizon, slack time.Duration) {
	if horizon <= MaxTimerHold || slack > 0 && horizon-MaxTimerHold < slack {
		f.addf("horizon %s: want at least slack (%s) above %s, since nearer tasks go undelayed", horizon, slack, MaxTimerHold)
	}
}

// validateDelays demands more than slack between neighbours, the first one's
// being the undelayed level 0, so that no two windows meet.
func validateDelays(f *faults, delays []time.Duration, slack time.Duration) {
	var last time.Duration
	var lastLevel int
	for i, d := range delays {
		switch {
		case d <= 0:
			f.addf("level %d (%s): want more than 0", i+1, d)
			continue
		case d > math.MaxInt64-MaxLevelHold:
			f.addf("level %d (%s): too long to add lead and slack", i+1, d)
			continue
		case d <= last:
			f.addf("level %d (%s): want more than level %d (%s)", i+1, d, lastLevel, last)
			continue
		case d-last <= slack:
			f.addf("level %d (%s): want more than slack (%s) above level %d (%s)", i+1, d, slack, lastLevel, last)
		}
		last, lastLevel = d, i+1
	}
}
