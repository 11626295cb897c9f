package bide

import "time"

// Due says which overdue tasks a sweep looks for.
type Due struct {
	// Types are the types to look for.
	Types []string
	// WaitingFrom and SentFrom are the times up to which an earlier scan left
	// nothing; zero to scan everything.
	WaitingFrom, SentFrom time.Time
	// Grace is how long a SENT task may be overdue.
	Grace time.Duration
	// Limit is the most tasks to take of each state.
	Limit int
}

// Ended is a task after an execution that failed, or that is suspected to have
// killed its worker.
type Ended struct {
	ID             int64
	BizType, BizID string
	State          State
	Attempts       int
	LastError      string
}
