// Orders come in and answers go out, a line each.

package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"time"
)

// What an order is answered with.
type answer struct {
	operations int64
	elapsed    time.Duration
	// What was burnt on purpose, and is no price of the pool.
	burnt time.Duration
	times []time.Duration
	// Known only where it is not what all threads used.
	used *usage
	// Known only where a caller may run tasks.
	byWorkers *int64
	// Known only where memory is the question.
	held *memory
}

func (a answer) String() string {
	text := fmt.Sprintf("done operations=%d nanos=%d", a.operations, a.elapsed.Nanoseconds())
	if a.used != nil {
		text += fmt.Sprintf(" cpu=%d sleeps=%d preemptions=%d", notNegative(a.used.cpu), a.used.sleeps, a.used.preemptions)
	}
	if a.byWorkers != nil {
		text += fmt.Sprintf(" by_workers=%d", *a.byWorkers)
	}
	if len(a.times) > 0 {
		sort.Slice(a.times, func(i, j int) bool { return a.times[i] < a.times[j] })
		// The smallest that is no less than so many thousandths of all.
		for _, share := range []struct {
			name        string
			thousandths int
		}{{"p50", 500}, {"p99", 990}, {"p999", 999}, {"max", 1_000}} {
			rank := (len(a.times)*share.thousandths + 999) / 1_000
			text += fmt.Sprintf(" %s=%d", share.name, a.times[rank-1].Nanoseconds())
		}
	}
	if a.held != nil {
		text += fmt.Sprintf(" resident=%d kept=%d", notNegative(a.held.resident), notNegative(a.held.kept))
	}
	return text
}

func notNegative(value int64) int64 {
	if value < 0 {
		return 0
	}
	return value
}

// As many threads as the others have, and no more than there are CPUs. Set anew for every order: the one
// before may have had fewer.
func limitThreads(threads int) {
	if cpus := runtime.NumCPU(); threads > cpus {
		threads = cpus
	}
	runtime.GOMAXPROCS(threads)
}

// Greets, and answers orders until there are no more.
func takeOrders(run func(words []string) (string, error)) {
	fmt.Println("ready", runtime.Version())
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		text, err := run(strings.Fields(orders.Text()))
		if err != nil {
			text = "failed " + err.Error()
		}
		fmt.Println(text)
	}
}
