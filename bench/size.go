package main

import "time"

// size is how much a run measures.
type size struct {
	repeat   int           // runs of each measurement whose figures are judged
	rates    []int         // tasks per second; the middle one is judged and repeated
	load     time.Duration // of each run at a rate
	peers    int           // repeats of a peer's run
	messages int           // relayed, and in a burst
	// sustained is how long the relay's rate must last to count.
	sustained time.Duration
	drained   int
	few       int // pending tasks of the claim
	many      int
	passed    int // tasks that pass while a transaction holds its snapshot
	logged    int // tasks whose WAL is counted
	midnight  int
	orders    int // of the smaller midnight, through the broker
	held      int
	idle      time.Duration
}

// judgedRate is the rate of the bars, in tasks per second.
const judgedRate = 1000

var full = size{
	repeat: 3, rates: []int{200, judgedRate, 2000}, load: 10 * time.Second, peers: 2,
	messages: 60_000, sustained: 3 * time.Second, drained: 30_000,
	few: 100_000, many: 10_000_000, passed: 1_000_000,
	logged: 20_000, midnight: 1_000_000, orders: 100_000, held: 10_000, idle: 15 * time.Second,
}

var brief = size{
	repeat: 1, rates: []int{judgedRate}, load: 3 * time.Second, peers: 1,
	messages: 30_000, sustained: time.Second, drained: 5_000,
	few: 10_000, many: 100_000, passed: 20_000,
	logged: 2_000, midnight: 20_000, orders: 10_000, held: 10_000, idle: 3 * time.Second,
}
