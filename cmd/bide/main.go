// Command bide is the operator's tool.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/bide-mq/bide/internal/service"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // the command could not be carried out
	exitUsage   = 2 // wrong arguments
	exitNo      = 3 // carried out, and the answer is no; see errNo
)

// errNo ends a command whose answer is no: doctor has found errors, audit a
// broken promise, tasks nothing; cancel came too late, requeue met no task.
var errNo = errors.New("the answer is no")

type commands struct {
	Migrate migrateCommand `cmd:"" help:"Create the ledger, or bring it to this version."`
	Plan    planCommand    `cmd:"" help:"Show the way of a delay: how long in the ledger, how long in the broker, and what a plain delay queue would have cost."`
	Tasks   tasksCommand   `cmd:"" help:"Find tasks, live and finished."`
	Cancel  cancelCommand  `cmd:"" help:"Withdraw a task at any stage, and say what was reached."`
	Requeue requeueCommand `cmd:"" help:"Let FAILED tasks start over, at once if they are due."`
	Doctor  doctorCommand  `cmd:"" help:"Look over database, handlers and broker, and say what is wrong and the remedy."`
	Audit   auditCommand   `cmd:"" help:"Hold Bide's promises against ledger and history. Reads all of both."`
	Demo    demoCommand    `cmd:"" help:"Run a shop on real servers, plant faults, and count what was lost, early or double. Drops and makes the database bide_demo."`

	Version kong.VersionFlag `help:"Print the version."`
}

const description = `The operator's tool of Bide, the delayed-task service.

Ledger and broker are found by the same BIDE_ variables as the services use; see "consumer --help".

Exit codes: 0 done; 1 failure; 2 wrong usage; 3 the answer is no (doctor found errors, audit a broken promise, tasks nothing, cancel came too late or met no task, requeue met no task).`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var cli commands
	exited, code := false, exitOK
	parser, err := kong.New(&cli,
		kong.Name("bide"), kong.Description(description), kong.Writers(out, errs),
		kong.Vars{"version": "bide " + service.Version()},
		kong.Exit(func(c int) { exited, code = true, c }),
	)
	if err != nil {
		_, _ = fmt.Fprintln(errs, err)
		return exitFailure
	}
	command, err := parser.Parse(args)
	if exited { // help or version
		return code
	}
	if err != nil {
		_, _ = fmt.Fprintf(errs, "bide: %v; see bide --help\n", err)
		return exitUsage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.BindTo(out, (*io.Writer)(nil))
	return exitCode(command.Run(), errs)
}

func exitCode(err error, errs io.Writer) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNo):
		return exitNo
	default:
		_, _ = fmt.Fprintln(errs, "bide:", err)
		return exitFailure
	}
}

// printJSON writes v as indented JSON.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
