// Timers of the runtime (time.AfterFunc and Stop), doing the workloads of the bench's suite "scheduled".
// It does the same as crates/millpond-bench/src/workloads/scheduled, step by step; what is explained
// there is not explained again. Orders and answers are lines: see
// crates/millpond-bench/src/peers/guest/mod.rs.
//
// Nothing needs to warm up here, so the last word of an order is not used.
package main

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"
)

const (
	workers  = 2
	later    = 1_000
	share    = 10
	farNanos = 3_600_000_000_000
	// No timer is due before this, or after that, where all are cancelled.
	nearestNanos  = 1_000_000_000
	farthestNanos = 1_000_000_000_000
	leadNanos     = 250_000_000
	// Fewer timers are scheduled sooner.
	leastLeadNanos = 20_000_000
	leadNanosEach  = 5_000
	firingAt       = "firing-"
	patience       = 5 * time.Second
	seed           = 0x66697265
)

// A Weyl sequence, well mixed (SplitMix64).
type random uint64

// From 0 to just below 1.
func (r *random) share() float64 {
	*r += 0x9e3779b97f4a7c15
	mixed := uint64(*r)
	mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
	mixed ^= mixed >> 31
	return float64(mixed>>11) * 0x1p-53
}

// Timers that are due in an hour or two, in no order. None of them may run.
type far struct {
	random random
	number int64
	ran    atomic.Int64
}

func (f *far) schedule() *time.Timer {
	f.number++
	own := f.number
	delay := farNanos + farNanos*f.random.share()
	return time.AfterFunc(time.Duration(delay), func() { f.ran.Add(own) })
}

func (f *far) check() error {
	if f.ran.Load() != 0 {
		return fmt.Errorf("timers fired that were not due")
	}
	return nil
}

func pending(pending int64) (answer, error) {
	timers := &far{random: seed}
	waiting := make([]*time.Timer, 0, pending)
	for timer := int64(0); timer < pending; timer++ {
		waiting = append(waiting, timers.schedule())
	}
	recent := make([]*time.Timer, later)
	for timer := range recent {
		recent[timer] = timers.schedule()
	}
	operations := pending / share
	if operations < 1 {
		operations = 1
	}
	before, known := usageWithout(0)
	start := time.Now()
	for operation := int64(0); operation < operations; operation++ {
		newest := timers.schedule()
		recent[operation%later].Stop()
		recent[operation%later] = newest
	}
	done := answer{operations: operations, elapsed: time.Since(start)}
	if after, stillKnown := usageWithout(0); known && stillKnown {
		done.used = after.since(before)
	}
	// Nobody else ends them: the next round would find them pending.
	for _, timer := range append(waiting, recent...) {
		timer.Stop()
	}
	return done, timers.check()
}

func filling(isFillingTimed bool, count int64) (answer, error) {
	random := random(seed)
	delays := make([]time.Duration, count)
	for timer := range delays {
		delays[timer] = time.Duration(nearestNanos + (farthestNanos-nearestNanos)*random.share())
	}
	timers := make([]*time.Timer, count)
	var ran atomic.Int64
	empty, emptyKnown := usageWithout(0)
	start := time.Now()
	for timer := range timers {
		own := int64(timer)
		timers[timer] = time.AfterFunc(delays[timer], func() { ran.Add(own + 1) })
	}
	filled := time.Since(start)
	full, fullKnown := usageWithout(0)
	from := time.Now()
	for _, timer := range timers {
		timer.Stop()
	}
	cancelled := time.Since(from)
	last, lastKnown := usageWithout(0)
	// Those that are due may have run, and their numbers were added.
	lasted, due := time.Since(start), int64(0)
	for timer, delay := range delays {
		if delay <= lasted {
			due += int64(timer) + 1
		}
	}
	if ran.Load() > due {
		return answer{}, fmt.Errorf("timers fired that were not due")
	}
	done := answer{operations: count, elapsed: cancelled}
	if fullKnown && lastKnown {
		done.used = last.since(full)
	}
	if isFillingTimed {
		done = answer{operations: count, elapsed: filled}
		if emptyKnown && fullKnown {
			done.used = full.since(empty)
		}
	}
	return done, nil
}

func firing(perSecond float64, tasks int64) (answer, error) {
	lead := time.Duration(leastLeadNanos + tasks*leadNanosEach)
	if lead > leadNanos {
		lead = leadNanos
	}
	random := random(seed)
	late := make([]atomic.Int64, tasks)
	var ran, early, again atomic.Int64
	start, at := time.Now().Add(lead), 0.0
	for task := int64(0); task < tasks; task++ {
		at += -math.Log(1-random.share()) / perSecond * 1e9
		due, own := start.Add(time.Duration(at)), &late[task]
		time.AfterFunc(time.Until(due), func() {
			lateness := time.Since(due)
			if lateness < 0 {
				early.Add(1)
			}
			// None is late by nothing: then a second run of the same task shows.
			if lateness < 1 {
				lateness = 1
			}
			if !own.CompareAndSwap(0, int64(lateness)) {
				again.Add(1)
			}
			ran.Add(1)
		})
	}
	time.Sleep(time.Until(start.Add(time.Duration(at))))
	seen, latest := ran.Load(), time.Now()
	for seen < tasks && time.Since(latest) < patience {
		time.Sleep(time.Millisecond)
		if now := ran.Load(); now > seen {
			seen, latest = now, time.Now()
		}
	}
	elapsed := time.Since(start)
	if ran.Load() != tasks || again.Load() != 0 {
		return answer{}, fmt.Errorf("%d timers were scheduled and %d fired", tasks, ran.Load())
	}
	if early.Load() != 0 {
		return answer{}, fmt.Errorf("%d timers fired before they were due", early.Load())
	}
	done := answer{operations: tasks, elapsed: elapsed, times: make([]time.Duration, tasks)}
	for task := range late {
		done.times[task] = time.Duration(late[task].Load())
	}
	return done, nil
}

var works = map[string]func(int64) (answer, error){
	"fill":       func(timers int64) (answer, error) { return filling(true, timers) },
	"cancel-all": func(timers int64) (answer, error) { return filling(false, timers) },
	"pending":    pending, "memory": held, "hour": hour,
}

func run(words []string) (string, error) {
	if len(words) != 6 || words[0] != "run" {
		return "", fmt.Errorf("not an order: %s", strings.Join(words, " "))
	}
	work, known := works[words[1]]
	if strings.HasPrefix(words[1], firingAt) {
		perSecond := float64(number(words[1][len(firingAt):]))
		work, known = func(tasks int64) (answer, error) { return firing(perSecond, tasks) }, perSecond > 0
	}
	if !known {
		return "", fmt.Errorf("there is no work %s", words[1])
	}
	if words[2] != "after-func" {
		return "", fmt.Errorf("there is no executor %s", words[2])
	}
	// The others have a thread for the caller and each worker.
	limitThreads(workers + 1)
	before, beforeKnown := usageWithout(0)
	done, err := work(number(words[4]))
	if err != nil {
		return "", err
	}
	// Of the pending ones only a part is timed: it reads what was used for that itself.
	after, afterKnown := usageWithout(0)
	if done.used == nil && strings.HasPrefix(words[1], firingAt) && beforeKnown && afterKnown {
		done.used = after.since(before)
	}
	return done.String(), nil
}

func main() { takeOrders(run) }
