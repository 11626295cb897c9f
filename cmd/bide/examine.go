package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/outbox"
)

// examineTransport looks for servers that may be spoken to in the clear, or
// that may be somebody else. By default (sslmode=prefer) pgx takes an unencrypted
// connection where it is offered no other.
func examineTransport(cfg *pgx.ConnConfig) []bide.Finding {
	var exposed []string
	look := func(host string, transport *tls.Config) {
		verified := transport != nil && !transport.InsecureSkipVerify
		if !verified && !isLocal(host) && !slices.Contains(exposed, host) {
			exposed = append(exposed, host)
		}
	}
	look(cfg.Host, cfg.TLSConfig)
	for _, fallback := range cfg.Fallbacks {
		look(fallback.Host, fallback.TLSConfig)
	}
	if len(exposed) == 0 {
		return nil
	}
	return []bide.Finding{{
		Severity: bide.SeverityWarning, Subject: "database",
		Problem: "connections to " + strings.Join(exposed, ", ") + " may be unencrypted, or lead to another server",
		Remedy:  "set sslmode=verify-full in BIDE_DATABASE_URL, and sslrootcert to the authority's file unless the system knows it",
	}}
}

// isLocal reports whether a connection to the host stays on this machine.
func isLocal(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || host == "localhost" || strings.HasPrefix(host, "/")
}

func examineLedger(ctx context.Context, ledger *outbox.Ledger) []bide.Finding {
	d, err := ledger.Diagnose(ctx)
	if err != nil {
		return bide.FindingsOf("ledger", err)
	}
	overdue, err := ledger.OldestOverdue(ctx)
	if err != nil {
		return bide.FindingsOf("ledger", err)
	}
	return append(examineServer(d), examineTasks(d, overdue)...)
}

// findings gathers those that apply.
type findings []bide.Finding

func (f *findings) add(applies bool, severity bide.Severity, subject, problem, remedy string) {
	if applies {
		*f = append(*f, bide.Finding{Severity: severity, Subject: subject, Problem: problem, Remedy: remedy})
	}
}

// Of deadlock_timeout, in milliseconds. Nine tenths of it are an execution's
// whole time, which at the least is a few round trips and a commit.
const (
	leastDeadlockTimeout = 10
	fairDeadlockTimeout  = 500
)

func examineServer(d outbox.Diagnosis) findings {
	var f findings
	f.add(d.ServerVersion < 140000, bide.SeverityError, "database", fmt.Sprintf("server version %d", d.ServerVersion), "use PostgreSQL 14 or later")
	f.add(d.Isolation != "read committed", bide.SeverityInfo, "database", "transactions are "+d.Isolation+" by default",
		"Bide's own are READ COMMITTED all the same; the application's schedule may meet serialization failures, which it must retry")
	severity, effect := bide.SeverityWarning, "which leaves executions little time"
	if d.DeadlockTimeout < leastDeadlockTimeout {
		severity, effect = bide.SeverityError, "in which hardly an execution comes to its end"
	}
	f.add(d.DeadlockTimeout < fairDeadlockTimeout, severity, "database",
		fmt.Sprintf("deadlock_timeout is %d ms, %s", d.DeadlockTimeout, effect), "set it to 1s, the default, and restart the consumers")
	f.add(d.OldestTransaction > 10*time.Minute, bide.SeverityWarning, "database",
		fmt.Sprintf("a transaction has been open for %s and keeps dead rows from being removed", d.OldestTransaction.Round(time.Second)), "end it; see pg_stat_activity")
	return f
}

func examineTasks(d outbox.Diagnosis, overdue time.Duration) findings {
	var f findings
	const log = `look for "housekeeping" in the consumers' logs`
	f.add(d.Stray > 0, bide.SeverityWarning, "history", fmt.Sprintf("%d finished tasks are in the default partition: housekeeping has been failing", d.Stray), log)
	f.add(d.DaysAhead < 2, bide.SeverityWarning, "history", fmt.Sprintf("partitions exist for %d days ahead", d.DaysAhead),
		"run a consumer as the schema's owner, and "+log)
	f.add(!d.Owner, bide.SeverityWarning, "history", "this role does not own the history and cannot make or drop its partitions",
		"run the consumers as the role that migrates, or grant it to theirs")
	f.add(d.Failed > 0, bide.SeverityWarning, "tasks", fmt.Sprintf("%d are FAILED", d.Failed), "bide tasks --state FAILED, mend the cause, then bide requeue")
	f.add(d.StaleBatches > 0, bide.SeverityWarning, "relay", fmt.Sprintf("%d batches of dead relays wait to be taken over", d.StaleBatches), "start a producer")
	f.add(overdue > 10*time.Second, bide.SeverityError, "tasks", fmt.Sprintf("the oldest has been overdue for %s", overdue.Round(time.Second)),
		"run a consumer that has a handler for it; see bide tasks --overdue 10s")
	return f
}
