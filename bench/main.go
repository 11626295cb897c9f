package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"
)

// options are the command line.
type options struct {
	bin       string
	broker    string
	queueType string
	mode      string
	rate      int
	seconds   int
	repeat    int
	consumers int
	held      int
}

func main() { os.Exit(run()) }

func run() int {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "directory of the executables producer and consumer")
	flag.StringVar(&o.broker, "broker", "rabbitmq", "rabbitmq, rocketmq or none")
	flag.StringVar(&o.queueType, "queue-type", "quorum", "quorum or classic")
	flag.StringVar(&o.mode, "mode", "timers", "with rocketmq: timers or levels")
	flag.IntVar(&o.rate, "rate", 1000, "tasks per second")
	flag.IntVar(&o.seconds, "seconds", 30, "seconds of load")
	flag.IntVar(&o.repeat, "repeat", 3, "runs; the median and the spread are reported")
	flag.IntVar(&o.consumers, "consumers", 1, "consumer processes")
	flag.IntVar(&o.held, "held", 10000, "messages to hold at once")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: bench [flags] lateness|held\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.measure(ctx, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func (o options) measure(ctx context.Context, what string) error {
	if o.rate < 1 || o.seconds < 1 || o.repeat < 1 || o.consumers < 1 || o.held < 1 {
		return errors.New("rate, seconds, repeat, consumers and held: want at least 1")
	}
	switch what {
	case "lateness":
		return o.repeated(ctx, o.lateness)
	case "held":
		return o.repeated(ctx, o.hold)
	default:
		return fmt.Errorf("measurement %q: want lateness or held", what)
	}
}

// figure is one measured value.
type figure struct {
	name  string
	value float64
}

// repeated measures several times and prints each figure's median and spread.
func (o options) repeated(ctx context.Context, once func(context.Context) ([]figure, error)) error {
	var names []string
	values := map[string][]float64{}
	for i := range o.repeat {
		figures, err := once(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("run %d:", i+1)
		for _, f := range figures {
			if values[f.name] == nil {
				names = append(names, f.name)
			}
			values[f.name] = append(values[f.name], f.value)
			fmt.Printf(" %s=%.1f", f.name, f.value)
		}
		fmt.Println()
	}
	fmt.Printf("%-22s %10s %10s %10s\n", "", "min", "median", "max")
	for _, name := range names {
		v := slices.Sorted(slices.Values(values[name]))
		fmt.Printf("%-22s %10.1f %10.1f %10.1f\n", name, v[0], v[len(v)/2], v[len(v)-1])
	}
	return nil
}

// lateness places tasks at the rate and waits for their effects.
func (o options) lateness(ctx context.Context) ([]figure, error) {
	s, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.place(ctx, o.rate, time.Duration(o.seconds)*time.Second); err != nil {
		return nil, err
	}
	if err := s.finished(ctx, o.rate*o.seconds); err != nil {
		return nil, err
	}
	figures, err := s.report(ctx)
	if err != nil {
		return nil, err
	}
	beside, err := o.beside(ctx)
	return append(figures, beside...), err
}

// beside measures the broker alone, after Bide and on the same server.
func (o options) beside(ctx context.Context) ([]figure, error) {
	switch o.broker {
	case "rabbitmq":
		return o.bareRabbit(ctx)
	case "rocketmq":
		return o.bareRocket(ctx, o.mode == "timers")
	default:
		return nil, nil
	}
}

// hold sends many messages to one consumer, due at the same later moment.
func (o options) hold(ctx context.Context) ([]figure, error) {
	o.consumers = 1
	s, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.sendHeld(ctx, o.held); err != nil {
		return nil, err
	}
	if err := s.finished(ctx, o.held); err != nil {
		return nil, err
	}
	return s.report(ctx)
}
