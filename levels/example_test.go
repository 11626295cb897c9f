package levels_test

import (
	"fmt"
	"time"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
)

// Twenty-five minutes is none of RocketMQ's levels. Five of them pass in the
// ledger, the rest is one exact hop; the level above would be 5 minutes late.
func Example_rocketMQ() {
	const lead, slack = 10 * time.Millisecond, levels.DefaultSlack
	plan, err := levels.NewPlan(bide.Capabilities{Delays: levels.RocketMQ(), Lead: lead, Window: 256}, slack)
	if err != nil {
		fmt.Println(err)
		return
	}
	j := plan.Describe(25*time.Minute, levels.RocketMQ())
	fmt.Printf("ledger %s, then level %d for %s, then held for at most %s\n", j.Wait, j.Level, j.Broker.Max, j.Hold.Max)
	fmt.Printf("rounded up to %s it would be %s late\n", j.Rounded.Nominal, j.Rounded.Late)
	// Output:
	// ledger 4m59.74s, then level 15 for 20m0s, then held for at most 250ms
	// rounded up to 30m0s it would be 5m0s late
}

// RabbitMQ's TTLs are free to choose. Taken a little shorter than their tier is
// named, they let a task of exactly 30 minutes leave at once.
func Example_rabbitMQ() {
	const lead, slack = 10 * time.Millisecond, levels.DefaultSlack
	ttls, err := levels.RabbitMQ().Less(lead + slack)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := levels.NewPlan(bide.Capabilities{Delays: ttls, Lead: lead, Window: 256}, slack)
	if err != nil {
		fmt.Println(err)
		return
	}
	j := plan.Describe(30*time.Minute, levels.RabbitMQ())
	fmt.Printf("ledger %s, then tier %s with a TTL of %s\n", j.Wait, levels.RabbitMQ()[j.Level-1], j.Broker.Max)
	// Output: ledger 0s, then tier 30m0s with a TTL of 29m59.74s
}

func ExamplePlan_At() {
	plan, err := levels.NewPlan(bide.Capabilities{
		Delays: levels.Table{time.Second, time.Minute}, Lead: 10 * time.Millisecond, Window: 256,
	}, levels.DefaultSlack)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, remaining := range []time.Duration{
		time.Minute + 100*time.Millisecond, 50 * time.Second, 100 * time.Millisecond, -time.Second,
	} {
		answer := plan.At(remaining)
		fmt.Println(remaining, answer.Kind, answer.Level, answer.Wait.Round(time.Millisecond))
	}
	// Output:
	// 1m0.1s send 2 0s
	// 50s wait 1 48.74s
	// 100ms send 0 0s
	// -1s sweep 0 0s
}

func ExampleParseTable() {
	_, err := levels.ParseTable("1s 10s 5s 60 1m 60s")
	fmt.Println(err)
	// Output:
	// level 3 "5s": shorter than level 2, want ascending delays
	// level 4 "60": no unit, want s, m, h or d after the number
	// level 6 "60s": as long as level 5, want each delay once
}
