package bide

import (
	"encoding/json"
	"time"
)

// State is where a live task stands in the ledger.
type State string

// The states of a live task. A finished task leaves the live table.
const (
	// Waiting: in the ledger; no message is on its way.
	Waiting State = "WAITING"
	// Sent: handed to a broker, or about to be.
	Sent State = "SENT"
	// Running: leased to a worker that acts outside the database.
	Running State = "RUNNING"
	// Failed: given up, an operator's turn.
	Failed State = "FAILED"
)

// Result is how a task ended.
type Result string

// The results that history records.
const (
	// Done: the handler acted.
	Done Result = "DONE"
	// Skipped: the recheck found nothing to do, for example a paid order.
	Skipped Result = "SKIPPED"
	// Cancelled: the application or an operator withdrew it.
	Cancelled Result = "CANCELLED"
)

// Via is the path by which a task came to be executed.
type Via string

// The paths.
const (
	// ViaBroker: a message arrived in time.
	ViaBroker Via = "broker"
	// ViaSweep: the scan of the ledger found the task overdue.
	ViaSweep Via = "sweep"
)

// Task is a live ledger row.
type Task struct {
	ID      int64
	BizType string
	BizID   string
	// FireAt is the promise: no effect before this time.
	FireAt time.Time
	// RunAt is FireAt, or the time of the next attempt where that is later.
	RunAt time.Time
	State State
	// Sends counts how often the task was handed to a broker.
	Sends int
	// Attempts counts executions that failed.
	Attempts int
	// Reclaims counts executions that were begun under suspicion: an earlier
	// one ended without a word. See internal/worker.
	Reclaims int
	// Payload is the application's JSON; nil where it gave none.
	Payload json.RawMessage
}

// Window asks for the tasks whose remaining time lies in [From, To), to travel
// at Level (see [Send]), at most Limit of them: the nearest where Level is
// LevelTimer, else the farthest, since the nearest are about to slip out.
type Window struct {
	Level    int
	From, To time.Duration
	Limit    int
}

// Claimed is one task of a [Batch].
type Claimed struct {
	TaskID int64
	RunAt  time.Time
	Level  int
}

// Batch is what a relay has claimed in one statement and must settle.
type Batch struct {
	// ID is the journal row that stands for the batch until it is settled; 0
	// when nothing was claimed.
	ID    int64
	Tasks []Claimed
	// Now is the database's clock at the claim.
	Now time.Time
}
