package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bench is one run of the command.
type bench struct {
	size
	bin    string
	record *record
}

// measurement is one of those in the package's documentation.
type measurement struct {
	name string
	run  func(context.Context, *bench) error
}

var measurements = []measurement{
	{"lateness", measureLateness},
	{"relay", measureRelay},
	{"burst", measureBurst},
	{"drain", measureDrain},
	{"claim", measureClaim},
	{"wal", measureWAL},
	{"midnight", measureMidnight},
	{"cost", measureCost},
}

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func measure(ctx context.Context, args []string) error {
	var short bool
	var bin, out, rates string
	var repeat int
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&short, "short", false, "smaller sizes and one run each: to see that it works, not to judge by")
	flags.StringVar(&bin, "bin", "bin", "directory of the executables producer and consumer")
	flags.StringVar(&out, "out", "", "directory for results.json and the pictures; none by default")
	flags.StringVar(&rates, "rates", "", "tasks per second of the lateness, such as 200,1000,2000")
	flags.IntVar(&repeat, "repeat", 0, "runs of each measurement; by default 3, or 1 with -short, and of a peer's lateness 2")
	flags.Usage = func() {
		_, _ = fmt.Fprintf(flags.Output(), "usage: bench [flags] [MEASUREMENT...]\nmeasurements, all by default: %s\n", strings.Join(names(), " "))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &bench{size: full, bin: bin, record: newRecord()}
	if short {
		b.size = brief
	}
	if repeat > 0 {
		b.repeat, b.peers = repeat, repeat
	}
	if err := b.setRates(rates); err != nil {
		return err
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	began := time.Now()
	for _, m := range chosen {
		fmt.Printf("\n# %s\n", m.name)
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		b.record.print(os.Stdout, m.name)
		if out == "" {
			continue
		}
		if err := b.record.save(filepath.Clean(out)); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	fmt.Printf("\n%s in %s\n", b.record.Machine, time.Since(began).Round(time.Second))
	judge(os.Stdout, b)
	return nil
}

func (b *bench) setRates(text string) error {
	if text == "" {
		return nil
	}
	b.rates = nil
	for rate := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(rate)
		if err != nil || n < 1 {
			return fmt.Errorf("rate %q: want a number of tasks per second, at least 1", rate)
		}
		b.rates = append(b.rates, n)
	}
	return nil
}

func names() []string {
	all := make([]string, len(measurements))
	for i, m := range measurements {
		all[i] = m.name
	}
	return all
}

func choose(wanted []string) ([]measurement, error) {
	if len(wanted) == 0 {
		return measurements, nil
	}
	var chosen []measurement
	for _, name := range wanted {
		i := slices.Index(names(), name)
		if i < 0 {
			return nil, errors.New("measurement " + name + ": want " + strings.Join(names(), ", "))
		}
		chosen = append(chosen, measurements[i])
	}
	return chosen, nil
}
