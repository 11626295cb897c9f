// Package levels plans how a task travels: how long it waits in the ledger,
// at which of the broker's delays it is handed over, and what is left for the
// worker to wait out. It is pure arithmetic over durations: no clock, no I/O.
//
// # Windows
//
// A broker with fixed delays waits 1 s, 5 s, 10 s and so on, and nothing
// between. Rounding a delay up to the next of them would fire late, by up to
// an hour in RocketMQ's table. A [Plan] never rounds. It looks at the remaining
// time, which shrinks while the task lies in the ledger, and names the
// intervals of it, the windows, in which one hop through the broker ends just
// before the task is due:
//
//	remaining time, shrinking from right to left
//
//	0   lead           D1+lead                   D2+lead
//	├────┤▒▒▒▒├──────────┤▒▒▒▒├────────────────────┤▒▒▒▒├───────────▶
//	sweep none   wait    level 1       wait        level 2   wait
//	      slack          slack                     slack
//
// Level n, which waits Dn, takes what has between Dn+lead and Dn+lead+slack
// left. LevelNone takes what has between lead and lead+slack left, undelayed.
// Whatever lies right of a window waits until it meets it; whatever is nearer
// than lead, or overdue, is left to the sweep. Lead is the broker's usual
// lag, so a message handed over within its window arrives between 0 and slack
// before its task is due, and the worker holds it for that long. Slack exists
// so that a ledger which is polled, not watched, meets every window.
//
// A broker with timers waits any whole number of seconds up to its horizon.
// It needs two windows only: the near one, sent undelayed, and one wide one
// up to the horizon, whose messages are asked for a little early because
// the timers tick in seconds ([Plan.DeliverAt]).
//
// # Invariants
//
//   - Windows are disjoint, ascending and at least slack wide.
//   - Every remaining time has exactly one [Answer].
//   - By the plan nothing arrives late, and nothing is held longer than
//     [MaxLevelHold] or [MaxTimerHold].
//   - Waiting as told leads to a window at the first attempt.
package levels
