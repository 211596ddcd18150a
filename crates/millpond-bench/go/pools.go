// What tasks are brought to: goroutines, or workers that take closures out of a channel.

package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	workers      = 2
	bound        = 1024
	poolWarmUp   = 1_000
	settles      = 2 * time.Millisecond
	near         = 200 * time.Microsecond
	longestSleep = 20 * time.Millisecond
	patience     = 5 * time.Second
	// Channels have a bound. No round has more tasks than this, so it is never full.
	neverFull = 1_100_000
	// Goroutines have no place of their own to count, so they share so many.
	shards = 64
)

// A seat is where a goroutine counts. The padding keeps it on cache lines of its own.
type seat struct {
	tasks atomic.Int64
	sum   atomic.Int64
	_     [112]byte
}

// Counts a task where nobody else does. (Go has no store that is cheaper than this one.)
func (s *seat) count(number int64) {
	s.sum.Store(s.sum.Load() + number)
	s.tasks.Store(s.tasks.Load() + 1)
}

// Counts a task where others may.
func (s *seat) countAmongOthers(number int64) {
	s.sum.Add(number)
	s.tasks.Add(1)
}

// What tasks are brought to. The seat is the caller's, for tasks that it runs itself.
type pool interface {
	run(number int64, caller *seat)
	submit(number int64, caller *seat) <-chan int64
	seats() []seat
	close()
}

// A goroutine for each task.
type goroutines struct{ places []seat }

func (g *goroutines) run(number int64, _ *seat) {
	go func() { g.places[number%shards].countAmongOthers(number) }()
}

func (g *goroutines) submit(number int64, _ *seat) <-chan int64 {
	result := make(chan int64, 1)
	go func() {
		g.places[number%shards].countAmongOthers(number)
		result <- number
	}()
	return result
}

func (g *goroutines) seats() []seat { return g.places }

func (g *goroutines) close() {}

// A task of the channel pool. It gets the seat of who runs it: Go has no variables of a thread.
type task func(*seat)

// Workers that take closures out of a channel.
type channelPool struct {
	tasks      chan task
	callerRuns bool
	places     []seat
	ended      sync.WaitGroup
}

func newChannelPool(room int, callerRuns bool) *channelPool {
	p := &channelPool{tasks: make(chan task, room), callerRuns: callerRuns, places: make([]seat, workers)}
	p.ended.Add(workers)
	for worker := 0; worker < workers; worker++ {
		mine := &p.places[worker]
		go func() {
			for task := range p.tasks {
				task(mine)
			}
			p.ended.Done()
		}()
	}
	var all sync.WaitGroup
	all.Add(workers + 1)
	for worker := 0; worker < workers; worker++ {
		p.tasks <- func(*seat) {
			all.Done()
			all.Wait()
		}
	}
	all.Done()
	all.Wait()
	return p
}

func (p *channelPool) bring(work task, caller *seat) {
	if !p.callerRuns {
		p.tasks <- work
		return
	}
	select {
	case p.tasks <- work:
	default:
		work(caller)
	}
}

func (p *channelPool) run(number int64, caller *seat) {
	p.bring(func(s *seat) { s.count(number) }, caller)
}

func (p *channelPool) submit(number int64, caller *seat) <-chan int64 {
	result := make(chan int64, 1)
	p.bring(func(s *seat) {
		s.count(number)
		result <- number
	}, caller)
	return result
}

func (p *channelPool) seats() []seat { return p.places }

// Keeps every worker busy and fills the channel, until what is returned is closed.
func (p *channelPool) fillUp() chan struct{} {
	gate := make(chan struct{})
	var begun atomic.Int64
	wait := func(*seat) {
		begun.Add(1)
		<-gate
	}
	for begun.Load() < workers || len(p.tasks) < cap(p.tasks) {
		select {
		case p.tasks <- wait:
		default:
			runtime.Gosched()
		}
	}
	return gate
}

func (p *channelPool) close() {
	close(p.tasks)
	p.ended.Wait()
}

// A pool that is open, warm and idle.
type opened struct {
	pool
	callers       []seat
	tasksBefore   int64
	sumBefore     int64
	callersBefore int64
}

func open(executor string, work string) (*opened, error) {
	o := &opened{callers: make([]seat, mostProducers)}
	switch {
	case executor == "goroutines" && work != "blocking" && !strings.HasPrefix(work, "caller-runs"):
		o.pool = &goroutines{places: make([]seat, shards)}
	case executor == "channel" && work == "blocking":
		o.pool = newChannelPool(bound, false)
	case executor == "channel" && (work == "caller-runs" || work == "caller-runs-all"):
		o.pool = newChannelPool(bound, true)
	case executor == "channel":
		o.pool = newChannelPool(neverFull, false)
	default:
		return nil, fmt.Errorf("there is no executor %s", executor)
	}
	for number := int64(1); number <= poolWarmUp; number++ {
		o.run(number, &o.callers[0])
	}
	o.waitFor(poolWarmUp)
	time.Sleep(settles)
	o.tasksBefore, o.sumBefore = o.counted()
	o.callersBefore = o.byAllCallers()
	return o, nil
}

func (o *opened) byAllCallers() (tasks int64) {
	for index := range o.callers {
		tasks += o.callers[index].tasks.Load()
	}
	return
}

// How many tasks the callers have run themselves since it was opened.
func (o *opened) byCallers() int64 { return o.byAllCallers() - o.callersBefore }

func (o *opened) counted() (tasks, sum int64) {
	for _, seats := range [][]seat{o.seats(), o.callers} {
		for index := range seats {
			tasks += seats[index].tasks.Load()
			sum += seats[index].sum.Load()
		}
	}
	return
}

// Waits until so many tasks have run since it was opened, or until none has for a long time.
func (o *opened) waitFor(tasks int64) {
	start := time.Now()
	first, _ := o.counted()
	latest, latestAt, all := first, start, o.tasksBefore+tasks
	for {
		done, _ := o.counted()
		if done >= all {
			return
		}
		now := time.Now()
		if done > latest {
			latest, latestAt = done, now
		} else if now.Sub(latestAt) > patience {
			return
		}
		var left time.Duration
		if done > first {
			left = time.Duration(float64(now.Sub(start)) / float64(done-first) * float64(all-done))
		}
		switch {
		case left/2 > longestSleep:
			time.Sleep(longestSleep)
		case left > near:
			time.Sleep(left / 2)
		default:
			runtime.Gosched()
		}
	}
}

// Closes it, and checks that the tasks from 1 to tasks have run, once each.
func (o *opened) finish(tasks int64) error {
	o.close()
	counted, sum := o.counted()
	if ran := counted - o.tasksBefore; ran != tasks {
		return fmt.Errorf("%d tasks were submitted and %d ran", tasks, ran)
	}
	if sum-o.sumBefore != tasks*(tasks+1)/2 {
		return fmt.Errorf("%d tasks ran, but they are not the ones that were submitted", tasks)
	}
	return nil
}
