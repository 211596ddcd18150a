// Goroutines and a pool over a channel, doing the workloads of the bench's suite "pool". It does the
// same as crates/millpond-bench/src/workloads/pool, step by step; what is explained there is not
// explained again. Orders and answers are lines: see crates/millpond-bench/src/peers/guest/mod.rs.
//
// Nothing needs to warm up here but the pools themselves, so the last word of an order is not used.
package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	mostProducers = 4
	batch         = 1_000
	burst         = 10_000
	pausedTrip    = "trip-pause-"
)

func fire(o *opened, producers, tasks int64) answer {
	share := (tasks + producers - 1) / producers
	if share < 1 {
		share = 1
	}
	all := share * producers
	var missing atomic.Int64
	missing.Store(producers)
	began, ended := make([]time.Time, producers), make([]time.Time, producers)
	var done sync.WaitGroup
	done.Add(int(producers))
	for producer := int64(0); producer < producers; producer++ {
		index := producer
		go func() {
			for missing.Add(-1); missing.Load() > 0; {
				runtime.Gosched()
			}
			began[index] = time.Now()
			for number := index*share + 1; number <= (index+1)*share; number++ {
				o.run(number, &o.callers[index])
			}
			if index == 0 {
				o.waitFor(all)
			}
			ended[index] = time.Now()
			done.Done()
		}()
	}
	done.Wait()
	first, last := began[0], ended[0]
	for index := range began {
		if began[index].Before(first) {
			first = began[index]
		}
		if ended[index].After(last) {
			last = ended[index]
		}
	}
	return answer{operations: all, elapsed: last.Sub(first)}
}

// Every worker is kept busy and the queue is full, so the caller runs every task.
func callerRunsAll(o *opened, tasks int64) answer {
	gate := o.pool.(*channelPool).fillUp()
	start := time.Now()
	for number := int64(1); number <= tasks; number++ {
		o.run(number, &o.callers[0])
	}
	done := answer{operations: tasks, elapsed: time.Since(start)}
	byWorkers := tasks - o.byCallers()
	done.byWorkers = &byWorkers
	close(gate)
	return done
}

// A task brings all the others, or every task brings two, numbered as in a heap.
func fromInside(o *opened, tree bool, tasks int64) answer {
	places := o.seats()
	count := func(number int64) { places[number%shards].countAmongOthers(number) }
	var node func(number int64)
	node = func(number int64) {
		for child := 2 * number; child <= 2*number+1 && child <= tasks; child++ {
			own := child
			go node(own)
		}
		count(number)
	}
	start := time.Now()
	go func() {
		if tree {
			node(1)
			return
		}
		for number := int64(2); number <= tasks; number++ {
			o.run(number, nil)
		}
		count(1)
	}()
	o.waitFor(tasks)
	return answer{operations: tasks, elapsed: time.Since(start)}
}

func joinAll(o *opened, tasks int64) (answer, error) {
	batches := (tasks + batch - 1) / batch
	if batches < 1 {
		batches = 1
	}
	all := batches * batch
	handles := make([]<-chan int64, 0, batch)
	sum, start := int64(0), time.Now()
	for number := int64(1); number <= all; number++ {
		handles = append(handles, o.submit(number, &o.callers[0]))
		if len(handles) == batch {
			for _, handle := range handles {
				sum += <-handle
			}
			handles = handles[:0]
		}
	}
	elapsed := time.Since(start)
	if sum != all*(all+1)/2 {
		return answer{}, fmt.Errorf("the tasks did not return what they were given")
	}
	return answer{operations: all, elapsed: elapsed}, nil
}

func trips(o *opened, pause time.Duration, trips int64) (answer, error) {
	done := answer{operations: trips, times: make([]time.Duration, 0, trips)}
	wrong := 0
	for number := int64(1); number <= trips; number++ {
		if pause > 0 {
			done.burnt += workFor(pause)
		}
		start := time.Now()
		result := <-o.submit(number, &o.callers[0])
		took := time.Since(start)
		done.times = append(done.times, took)
		done.elapsed += took
		if result != number {
			wrong++
		}
	}
	if wrong > 0 {
		return answer{}, fmt.Errorf("%d of %d results are wrong", wrong, trips)
	}
	return done, nil
}

func workFor(pause time.Duration) time.Duration {
	for start := time.Now(); ; {
		if elapsed := time.Since(start); elapsed >= pause {
			return elapsed
		}
	}
}

func bursts(o *opened, bursts int64) answer {
	done := answer{operations: bursts}
	for past := int64(0); past < bursts; past++ {
		time.Sleep(settles)
		start := time.Now()
		for number := past*burst + 1; number <= (past+1)*burst; number++ {
			o.run(number, &o.callers[0])
		}
		o.waitFor((past + 1) * burst)
		done.elapsed += time.Since(start)
	}
	return done
}

// This goroutine keeps its thread, which reads the figures and is not counted.
func idle(millis int64) answer {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	done := answer{operations: millis}
	before, known := usageWithout(syscall.Gettid())
	start := time.Now()
	time.Sleep(time.Duration(millis) * time.Millisecond)
	done.elapsed = time.Since(start)
	after, stillKnown := usageWithout(syscall.Gettid())
	if known && stillKnown {
		done.used = after.since(before)
	}
	return done
}

func work(o *opened, name string, producers, operations int64) (answer, int64, error) {
	if pause, paused := pauseOf(name); paused {
		done, err := trips(o, pause, operations)
		return done, done.operations, err
	}
	switch name {
	case "fire", "blocking":
		done := fire(o, producers, operations)
		return done, done.operations, nil
	case "caller-runs":
		done := fire(o, producers, operations)
		byWorkers := done.operations - o.byCallers()
		done.byWorkers = &byWorkers
		return done, done.operations, nil
	case "caller-runs-all":
		return callerRunsAll(o, operations), operations, nil
	case "inside", "tree":
		return fromInside(o, name == "tree", operations), operations, nil
	case "join-all":
		done, err := joinAll(o, operations)
		return done, done.operations, err
	case "trip":
		done, err := trips(o, 0, operations)
		return done, done.operations, err
	case "burst":
		return bursts(o, operations), operations * burst, nil
	default:
		return idle(operations), 0, nil
	}
}

// The length of the pauses is in the name, in microseconds.
func pauseOf(name string) (time.Duration, bool) {
	if !strings.HasPrefix(name, pausedTrip) {
		return 0, false
	}
	return time.Duration(number(name[len(pausedTrip):])) * time.Microsecond, true
}

var works = map[string]bool{
	"fire": true, "blocking": true, "caller-runs": true, "caller-runs-all": true, "join-all": true,
	"inside": true, "tree": true,
	"trip": true, "burst": true, "idle": true,
}

func run(words []string) (string, error) {
	if len(words) != 6 || words[0] != "run" {
		return "", fmt.Errorf("not an order: %s", strings.Join(words, " "))
	}
	name, producers, operations := words[1], number(words[3]), number(words[4])
	if producers < 1 || producers > mostProducers {
		return "", fmt.Errorf("there are 1 to %d producers", mostProducers)
	}
	if _, paused := pauseOf(name); !works[name] && !paused {
		return "", fmt.Errorf("there is no work %s", name)
	}
	limitThreads(int(producers) + workers)
	o, err := open(words[2], name)
	if err != nil {
		return "", err
	}
	before, known := usageWithout(0)
	done, tasks, err := work(o, name, producers, operations)
	if err != nil {
		return "", err
	}
	time.Sleep(settles)
	after, stillKnown := usageWithout(0)
	if done.used == nil && known && stillKnown && name != "idle" {
		done.used = after.since(before)
		done.used.cpu -= int64(done.burnt)
	}
	if err := o.finish(tasks); err != nil {
		return "", err
	}
	return done.String(), nil
}

func main() { takeOrders(run) }
