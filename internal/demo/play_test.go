package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// partVariable says which part the test's executable plays.
const partVariable = "BIDE_DEMO_TEST_PART"

// Parts: how an engine may behave.
const (
	sound     = "sound"     // keeps every promise
	hasty     = "hasty"     // acts 300 ms early
	careless  = "careless"  // closes without looking whether the order is paid
	forgetful = "forgetful" // drops every tenth task
	generous  = "generous"  // gives the stock back twice
	failing   = "failing"   // ends half a second after its start
	stillborn = "stillborn" // ends at once
	stubborn  = "stubborn"  // does not stop when told to
)

// troupe makes a directory in which producer and consumer are this executable.
func troupe(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{producer, consumer} {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	return dir
}

// play is the main function of a service that stands in for Bide's.
func play(part string) int {
	fmt.Println("playing", part)
	if part == stillborn {
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if part == stubborn {
		ctx = context.Background()
		signal.Ignore(syscall.SIGTERM)
	}
	server := &http.Server{Addr: os.Getenv("BIDE_LISTEN"), ReadHeaderTimeout: time.Second}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	go func() { fmt.Println(server.ListenAndServe()) }()
	if filepath.Base(os.Args[0]) == producer {
		<-ctx.Done()
		return 0
	}
	if part == failing {
		time.AfterFunc(500*time.Millisecond, func() { os.Exit(4) })
	}
	if err := engine(ctx, part); err != nil && ctx.Err() == nil {
		fmt.Println("engine:", err)
		return 1
	}
	return 0
}

// engine is the least sweep that can keep the promises, or break one.
func engine(ctx context.Context, part string) error {
	conn, err := pgx.Connect(ctx, os.Getenv("BIDE_DATABASE_URL"))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	closeOrders, err := closeOrderSQL()
	if err != nil {
		return err
	}
	var ahead time.Duration
	switch part {
	case hasty:
		ahead = 300 * time.Millisecond
	case careless:
		closeOrders = strings.ReplaceAll(closeOrders, "AND status = 'UNPAID'", "")
	case forgetful:
		closeOrders = strings.ReplaceAll(closeOrders, "id = ANY($1)", "id = ANY($1) AND id % 10 <> 0")
	case generous:
		closeOrders = strings.ReplaceAll(closeOrders, "on_hand + back.quantity", "on_hand + 2 * back.quantity")
	}
	for {
		if err := sweep(ctx, conn, closeOrders, ahead); err != nil && !deadlock(err) {
			return err
		}
		if !sleepUntil(ctx, time.Now().Add(20*time.Millisecond)) {
			return nil
		}
	}
}

// deadlock reports whether the transaction has given way, and may try again.
func deadlock(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "40P01"
}

// sweep closes what is due. It waits for no order and no task: customers lock
// them the other way round when they cancel.
func sweep(ctx context.Context, conn *pgx.Conn, closeOrders string, ahead time.Duration) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `WITH due AS (
				DELETE FROM bide.delay_task WHERE id IN (
					SELECT task.id FROM bide.delay_task task JOIN shop.orders ON orders.id = task.biz_id::bigint
					WHERE task.fire_at <= now() + $1::interval LIMIT 50
					FOR UPDATE SKIP LOCKED)
				RETURNING *)
			INSERT INTO bide.delay_task_history (id, biz_type, biz_id, fire_at, created_at, result, via, sends, attempts, reclaims)
			SELECT id, biz_type, biz_id, fire_at, created_at, 'DONE', 'sweep', sends, attempts, reclaims FROM due
			RETURNING biz_id::bigint`, ahead)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(ids) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, closeOrders, ids)
		return err
	})
}
