// What timers hold and use while they wait. Each of these orders has a process of its own.

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

const waves = 3

// What the process has when all that nobody needs is collected, and is the machine's again.
func residentWhenClean() (int64, error) {
	runtime.GC()
	debug.FreeOSMemory()
	bytes, known := resident()
	if !known {
		return 0, fmt.Errorf("there is no /proc/self/smaps_rollup")
	}
	return bytes, nil
}

func held(count int64) (answer, error) {
	timers, handles := &far{random: seed}, []*time.Timer(nil)
	fill := func() {
		for timer := int64(0); timer < count; timer++ {
			handles = append(handles, timers.schedule())
		}
	}
	empty, err := residentWhenClean()
	if err != nil {
		return answer{}, err
	}
	start := time.Now()
	fill()
	first, err := residentWhenClean()
	if err != nil {
		return answer{}, err
	}
	for wave := 0; wave < waves; wave++ {
		for _, timer := range handles {
			timer.Stop()
		}
		handles = handles[:0]
		if _, err := residentWhenClean(); err != nil {
			return answer{}, err
		}
		fill()
	}
	last, err := residentWhenClean()
	if err != nil {
		return answer{}, err
	}
	done := answer{operations: count, elapsed: time.Since(start)}
	done.held = &memory{resident: first - empty, kept: (last - first) / waves}
	for _, timer := range handles {
		timer.Stop()
	}
	return done, timers.check()
}

// It waits until this process ends, and whoever ordered it looks on.
var waiting *time.Timer

func hour(timers int64) (answer, error) {
	start := time.Now()
	waiting = (&far{random: seed}).schedule()
	return answer{operations: timers, elapsed: time.Since(start)}, nil
}
