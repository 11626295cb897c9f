package demo

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// sold is a customer whose time to pay ended a second ago; notDue one who has
// an hour.
var (
	sold   = customer{delay: -time.Second, lines: []line{{1, 2}, {2, 1}, {1, 3}}}
	notDue = customer{delay: time.Hour, lines: []line{{3, 4}}}
)

// Orders 1 and 2 are closed, 3 is paid, 4 has an hour to go and is paid too:
// a shop without a fault. Each case plants one and must be told from all others.
func TestFaults(t *testing.T) {
	s := newShop(t)
	closeOrders, err := closeOrderSQL()
	require.NoError(t, err)
	for _, c := range []customer{sold, sold, sold, notDue, notDue, sold} {
		_, _, err := s.place(t.Context(), c)
		require.NoError(t, err)
	}
	_, err = s.db.Exec(t.Context(), closeOrders, []int64{1, 2})
	require.NoError(t, err)
	for _, id := range []int64{3, 4, 5, 6} {
		require.NoError(t, s.pay(t.Context(), id, customer{}))
	}

	sound := Audit{Placed: 6, Paid: 4, Closed: 2}
	with := func(plant func(*Audit)) Audit { a := sound; plant(&a); return a }
	tests := []struct {
		name string
		sql  []string
		want Audit
	}{
		{"none", nil, sound},
		{"lost", []string{
			`INSERT INTO shop.orders (deadline) VALUES (now() - interval '1 minute')`,
		}, with(func(a *Audit) { a.Placed, a.Lost = 7, 1 })},
		{"lost though its deadline is withdrawn", []string{
			`INSERT INTO shop.orders (deadline) VALUES ('infinity')`,
		}, with(func(a *Audit) { a.Placed, a.Lost = 7, 1 })},
		{"early", []string{
			`INSERT INTO shop.orders (deadline) VALUES (clock_timestamp() + interval '1 hour')`,
			`UPDATE shop.orders SET status = 'CLOSED' WHERE status = 'UNPAID'`,
		}, with(func(a *Audit) { a.Placed, a.Closed, a.Early = 7, 3, 1 })},
		{"early by less than the statement takes", []string{
			`INSERT INTO shop.orders (deadline) VALUES (clock_timestamp() + interval '500 ms')`,
			`UPDATE shop.orders SET status = 'CLOSED' FROM (SELECT pg_sleep(0.6)) AS work WHERE status = 'UNPAID'`,
		}, with(func(a *Audit) { a.Placed, a.Closed, a.Early = 7, 3, 1 })},
		{"closed though its deadline was withdrawn", []string{
			`UPDATE shop.orders SET deadline = 'infinity' WHERE id = 1`,
		}, with(func(a *Audit) { a.Early = 1 })},
		{"closed twice", []string{
			`UPDATE shop.orders SET status = 'CLOSED' WHERE id = 1`,
		}, with(func(a *Audit) { a.Double = 1 })},
		{"paid, then closed", []string{
			`UPDATE shop.orders SET status = 'CLOSED' WHERE id = 6`,
			`UPDATE shop.stock SET on_hand = on_hand + 5 WHERE sku = 1`,
			`UPDATE shop.stock SET on_hand = on_hand + 1 WHERE sku = 2`,
		}, with(func(a *Audit) { a.Paid, a.Closed, a.Double = 3, 3, 1 })},
		{"closed, then paid", []string{
			`UPDATE shop.orders SET status = 'PAID' WHERE id = 1`,
			`UPDATE shop.stock SET on_hand = on_hand - 5 WHERE sku = 1`,
			`UPDATE shop.stock SET on_hand = on_hand - 1 WHERE sku = 2`,
		}, with(func(a *Audit) { a.Paid, a.Closed, a.Double = 5, 1, 1 })},
		{"a payment taken for a closed order", []string{
			`INSERT INTO shop.payments (order_id) VALUES (1)`,
		}, with(func(a *Audit) { a.Double = 1 })},
		{"stock given back twice", []string{
			`UPDATE shop.stock SET on_hand = on_hand + 4 WHERE sku = 3`,
		}, with(func(a *Audit) { a.StockDrift = 4 })},
		{"stock not given back", []string{
			`UPDATE shop.stock SET on_hand = on_hand - 5 WHERE sku = 1`,
		}, with(func(a *Audit) { a.StockDrift = 5 })},
		{"stock given back to the wrong article", []string{
			`UPDATE shop.stock SET on_hand = on_hand - 1 WHERE sku = 1`,
			`UPDATE shop.stock SET on_hand = on_hand + 1 WHERE sku = 2`,
		}, with(func(a *Audit) { a.StockDrift = 2 })},
		{"stock moved behind the trigger's back", []string{
			`SET LOCAL session_replication_role = replica`,
			`INSERT INTO shop.stock_movement (sku, delta) VALUES (3, 7)`,
		}, with(func(a *Audit) { a.StockDrift = 7 })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rolledBack(t, s, func(tx pgx.Tx) {
				for _, sql := range tt.sql {
					_, err := tx.Exec(t.Context(), sql)
					require.NoError(t, err)
				}
				got, err := faults(t.Context(), tx)
				require.NoError(t, err)
				require.Equal(t, tt.want, got)
			})
		})
	}
}

// What the audit rests on cannot be rewritten.
func TestEventsAreAppendOnly(t *testing.T) {
	s := newShop(t)
	for _, sql := range []string{
		`UPDATE shop.order_event SET at = now()`, `DELETE FROM shop.order_event`, `TRUNCATE shop.order_event`,
		`UPDATE shop.stock_movement SET delta = 0`, `DELETE FROM shop.stock_movement`, `TRUNCATE shop.stock_movement`,
	} {
		_, err := s.db.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "append-only", sql)
	}
}

// 100 closes, 1 to 100 ms late; every tenth was the sweep's, as was one that
// came 3 s late.
func TestLateness(t *testing.T) {
	s := newShop(t)
	rolledBack(t, s, func(tx pgx.Tx) {
		for _, sql := range []string{
			`INSERT INTO shop.orders (deadline, status) SELECT now(), 'CLOSED' FROM generate_series(1, 101)`,
			`INSERT INTO shop.order_event (order_id, status, at)
			 SELECT id, 'CLOSED', deadline + CASE WHEN id = 101 THEN 3000 ELSE id END * interval '1 ms' FROM shop.orders`,
			`INSERT INTO bide.delay_task_history (id, biz_type, biz_id, fire_at, created_at, result, via, sends, attempts, reclaims)
			 SELECT id, 'close_order', id, deadline, deadline, 'DONE',
			        CASE WHEN id % 10 = 0 OR id = 101 THEN 'sweep' ELSE 'broker' END::bide.task_via, 1, 0, 0 FROM shop.orders`,
			`SELECT bide.schedule_in('close_order', 'another', '1 h')`,
		} {
			_, err := tx.Exec(t.Context(), sql)
			require.NoError(t, err)
		}
		got, err := audit(t.Context(), tx, false)
		require.NoError(t, err)
		require.Equal(t, Audit{
			Placed: 101, Closed: 101,
			Rescued: 11, P50: 50, P99: 98, Max: 3000, Unfinished: 1,
		}, got)

		got, err = audit(t.Context(), tx, true)
		require.NoError(t, err)
		require.Equal(t, []int{51, 100, 3000}, []int{got.P50, got.P99, got.Max})
	})
}

func TestAuditOfAnEmptyShop(t *testing.T) {
	got, err := audit(t.Context(), newShop(t).db, false)
	require.NoError(t, err)
	require.Equal(t, Audit{}, got)
}

func TestAuditLine(t *testing.T) {
	a := Audit{
		Placed: 2000, Paid: 640, Closed: 1360, Lost: 1, Early: 2, Double: 3, StockDrift: 4,
		Rescued: 57, P50: 9, P99: 31, Max: 3120, Unfinished: 9,
	}
	require.Equal(t, "audit: placed=2000 paid=640 closed=1360 lost=1 early=2 double=3 stock_drift=4 rescued=57 p50_ms=9 p99_ms=31 max_ms=3120", a.String())
}

func TestVerdict(t *testing.T) {
	sound := Audit{Placed: 100, Paid: 30, Closed: 70, Rescued: 10}
	cfg := Config{Orders: 100, Broker: "rabbitmq"}
	require.NoError(t, sound.verdict(cfg))

	tests := []struct {
		name  string
		plant func(*Audit)
		want  string
	}{
		{"lost", func(a *Audit) { a.Lost, a.Closed = 1, 69 }, "1 orders were never closed\n30 paid and 69 closed orders do not make 100"},
		{"early", func(a *Audit) { a.Early = 2 }, "2 orders were closed before their deadline"},
		{"double", func(a *Audit) { a.Double = 3 }, "3 orders were closed twice, or both paid and closed"},
		{"drift", func(a *Audit) { a.StockDrift = 4 }, "the stock is off by 4 units"},
		{"not placed", func(a *Audit) { a.Placed, a.Paid, a.Rescued = 99, 29, 0 }, "99 orders in the shop, 100 were to be placed"},
		{"unfinished", func(a *Audit) { a.Unfinished = 5 }, "5 tasks are not finished"},
		{"by the sweep", func(a *Audit) { a.Rescued = 11 }, "the sweep had to close 11 of 100 orders: more than a tenth did not come through the broker"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := sound
			tt.plant(&a)
			require.EqualError(t, a.verdict(cfg), tt.want)
		})
	}

	everything := Audit{Placed: 100, Paid: 30, Closed: 70, Rescued: 70}
	require.NoError(t, everything.verdict(Config{Orders: 100, Broker: NoBroker}))
}

var errRollback = errors.New("roll back")

// rolledBack runs f in a transaction that leaves nothing behind.
func rolledBack(t *testing.T, s *shop, f func(pgx.Tx)) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
		f(tx)
		return errRollback
	})
	require.ErrorIs(t, err, errRollback)
}
