package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bide-mq/bide"
)

// skus is the number of articles that sql/shop.sql puts on the shelves.
const skus = 20

//go:embed sql/shop.sql
var shopSQL string

//go:embed sql/place_order.sql
var placeOrderSQL string

//go:embed sql/lock_stock.sql
var lockStockSQL string

//go:embed sql/take_stock.sql
var takeStockSQL string

//go:embed sql/progress.sql
var progressSQL string

// shop is the application: the only code here that a user of Bide would write.
type shop struct {
	db *pgxpool.Pool

	late      atomic.Int64 // payments that found the order closed
	cancelled atomic.Int64 // tasks withdrawn
}

// openShop connects to the demo's database and makes the shop's tables there.
func openShop(ctx context.Context, databaseURL string) (*shop, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	cfg.MaxConns = 16
	db, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if _, err := db.Exec(ctx, shopSQL); err != nil {
		db.Close()
		return nil, fmt.Errorf("make the shop: %w", err)
	}
	return &shop{db: db}, nil
}

// serve lives through one order, from its placing to its last payment. It ends
// early, without an error, when ctx does.
func (s *shop) serve(ctx context.Context, c customer, opened time.Time) error {
	if !sleepUntil(ctx, opened.Add(c.arrives)) {
		return nil
	}
	id, deadline, err := s.place(ctx, c)
	if err != nil {
		return fmt.Errorf("place an order: %w", err)
	}
	switch c.ending {
	case leave:
	case extend:
		if !sleepUntil(ctx, deadline.Add(c.asks)) {
			return nil
		}
		if extended, err := s.extend(ctx, id); err != nil || !extended {
			return err
		}
		fallthrough
	case pay:
		if sleepUntil(ctx, deadline.Add(c.pays)) {
			return s.pay(ctx, id, c)
		}
	}
	return nil
}

// place sells and schedules in one transaction: neither exists without the
// other. The deadline is told by the local clock, for waiting only.
func (s *shop) place(ctx context.Context, c customer) (id int64, deadline time.Time, err error) {
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		deadline = time.Now().Add(c.delay)
		amounts := make([]int32, len(c.lines))
		articles := make([]int32, len(c.lines))
		for i, l := range c.lines {
			articles[i], amounts[i] = l.sku, l.quantity
		}
		if err := tx.QueryRow(ctx, placeOrderSQL, c.delay, articles, amounts).Scan(&id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT bide.schedule_in('close_order', $1, $2)", bizID(id), c.delay); err != nil {
			return err
		}
		// Last, since everybody wants these rows: they stay locked for no
		// longer than the commit takes.
		var stock pgx.Batch
		stock.Queue(lockStockSQL, id)
		stock.Queue(takeStockSQL, id)
		return tx.SendBatch(ctx, &stock).Close()
	})
	return id, deadline, err
}

// pay changes the order's row first: that is the lock by which a payment and
// the closing exclude each other. An order that is closed already is not paid.
func (s *shop) pay(ctx context.Context, id int64, c customer) error {
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE shop.orders SET status = 'PAID' WHERE id = $1 AND status = 'UNPAID'", id)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			s.late.Add(1)
			return nil
		}
		sleepUntil(ctx, time.Now().Add(c.ponders))
		if _, err := tx.Exec(ctx, "INSERT INTO shop.payments (order_id) VALUES ($1)", id); err != nil {
			return err
		}
		if c.cancels && c.ending == pay {
			_, err = s.cancelTask(ctx, tx, id)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("pay order %d: %w", id, err)
	}
	return nil
}

// errTooLate rolls a transaction back; it does not leave the package.
var errTooLate = errors.New("too late")

// extend withdraws the task and with it the deadline, or neither.
func (s *shop) extend(ctx context.Context, id int64) (bool, error) {
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		ok, err := s.cancelTask(ctx, tx, id)
		if err != nil {
			return err
		}
		if !ok {
			return errTooLate
		}
		_, err = tx.Exec(ctx, "UPDATE shop.orders SET deadline = 'infinity' WHERE id = $1", id)
		return err
	})
	if errors.Is(err, errTooLate) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("extend order %d: %w", id, err)
	}
	return true, nil
}

func (s *shop) cancelTask(ctx context.Context, tx pgx.Tx, id int64) (bool, error) {
	var answer string
	err := tx.QueryRow(ctx, "SELECT bide.cancel('close_order', $1)", bizID(id)).Scan(&answer)
	if err == nil && answer == "cancelled" {
		s.cancelled.Add(1)
		return true, nil
	}
	return false, err
}

// tally is how far the trade has come.
type tally struct{ unpaid, paid, closed, tasks int }

func (t tally) placed() int    { return t.unpaid + t.paid + t.closed }
func (t tally) settled() int   { return t.paid + t.closed }
func (t tally) finished() bool { return t.unpaid == 0 && t.tasks == 0 }

func (s *shop) tally(ctx context.Context) (tally, error) {
	var t tally
	err := s.db.QueryRow(ctx, progressSQL).Scan(&t.unpaid, &t.paid, &t.closed, &t.tasks)
	if err != nil {
		return tally{}, fmt.Errorf("count orders: %w", err)
	}
	return t, nil
}

// ledger returns the identity of the ledger that the shop's tasks are in.
func (s *shop) ledger(ctx context.Context) (bide.LedgerID, error) {
	var id string
	if err := s.db.QueryRow(ctx, "SELECT id::text FROM bide.ledger").Scan(&id); err != nil {
		return bide.LedgerID{}, fmt.Errorf("read the ledger's id: %w", err)
	}
	return bide.ParseLedgerID(id)
}

func bizID(order int64) string { return strconv.FormatInt(order, 10) }

// sleepUntil reports whether t came before ctx ended.
func sleepUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
