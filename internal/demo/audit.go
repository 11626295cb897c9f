package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/faults.sql
var faultsSQL string

//go:embed sql/lateness.sql
var latenessSQL string

// Audit is the verdict over one run; the package comment defines its counts.
type Audit struct {
	Placed, Paid, Closed            int
	Lost, Early, Double, StockDrift int
	// Rescued counts the closes that the sweep brought about.
	Rescued int
	// P50, P99 and Max say how long after the deadline orders were closed, in
	// milliseconds: the percentiles over the closes that came through the
	// broker, or over all where there is none; the maximum over all.
	P50, P99, Max int
	// Unfinished counts the tasks still alive. It is not part of the line.
	Unfinished int
}

// String returns the line that scripts read.
func (a Audit) String() string {
	return fmt.Sprintf("audit: placed=%d paid=%d closed=%d lost=%d early=%d double=%d stock_drift=%d rescued=%d p50_ms=%d p99_ms=%d max_ms=%d",
		a.Placed, a.Paid, a.Closed, a.Lost, a.Early, a.Double, a.StockDrift, a.Rescued, a.P50, a.P99, a.Max)
}

// verdict returns an error that names every broken promise.
func (a Audit) verdict(cfg Config) error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(a.Lost == 0, "%d orders were never closed", a.Lost)
	check(a.Early == 0, "%d orders were closed before their deadline", a.Early)
	check(a.Double == 0, "%d orders were closed twice, or both paid and closed", a.Double)
	check(a.StockDrift == 0, "the stock is off by %d units", a.StockDrift)
	check(a.Placed == cfg.Orders, "%d orders in the shop, %d were to be placed", a.Placed, cfg.Orders)
	check(a.Paid+a.Closed == a.Placed, "%d paid and %d closed orders do not make %d", a.Paid, a.Closed, a.Placed)
	check(a.Unfinished == 0, "%d tasks are not finished", a.Unfinished)
	check(cfg.Broker == NoBroker || a.Rescued*10 <= a.Placed,
		"the sweep had to close %d of %d orders: more than a tenth did not come through the broker", a.Rescued, a.Placed)
	return errors.Join(faults...)
}

// querier is satisfied by connections, pools and transactions.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// audit reads the verdict from the tables. sweepOnly says that no broker was
// used, so that the percentiles cover what the sweep did.
func audit(ctx context.Context, db querier, sweepOnly bool) (Audit, error) {
	a, err := faults(ctx, db)
	if err != nil {
		return Audit{}, err
	}
	err = db.QueryRow(ctx, latenessSQL, sweepOnly).Scan(&a.Rescued, &a.P50, &a.P99, &a.Max, &a.Unfinished)
	if err != nil {
		return Audit{}, fmt.Errorf("audit lateness: %w", err)
	}
	return a, nil
}

// faults fills in what follows from the shop's tables alone.
func faults(ctx context.Context, db querier) (Audit, error) {
	var a Audit
	err := db.QueryRow(ctx, faultsSQL).Scan(
		&a.Placed, &a.Paid, &a.Closed, &a.Lost, &a.Early, &a.Double, &a.StockDrift)
	if err != nil {
		return Audit{}, fmt.Errorf("audit faults: %w", err)
	}
	return a, nil
}
