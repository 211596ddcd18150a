// What threads used, and what memory the process has, from /proc.

package main

import (
	"os"
	"strconv"
	"strings"
)

// What threads used. The runtime's own work for the tasks too, so all of them count.
type usage struct{ cpu, sleeps, preemptions int64 }

// All threads but one.
func usageWithout(thread int) (u usage, known bool) {
	folders, err := os.ReadDir("/proc/self/task")
	for _, folder := range folders {
		if folder.Name() == strconv.Itoa(thread) {
			continue
		}
		at := "/proc/self/task/" + folder.Name()
		times, failed := os.ReadFile(at + "/schedstat")
		status, alsoFailed := os.ReadFile(at + "/status")
		if failed != nil || alsoFailed != nil {
			return u, false
		}
		u.cpu += number(strings.Fields(string(times))[0])
		for _, line := range strings.Split(string(status), "\n") {
			name, value, _ := strings.Cut(line, ":")
			switch name {
			case "voluntary_ctxt_switches":
				u.sleeps += number(strings.TrimSpace(value))
			case "nonvoluntary_ctxt_switches":
				u.preemptions += number(strings.TrimSpace(value))
			}
		}
	}
	return u, err == nil
}

func number(text string) int64 {
	value, _ := strconv.ParseInt(text, 10, 64)
	return value
}

func (u usage) since(before usage) *usage {
	return &usage{u.cpu - before.cpu, u.sleeps - before.sleeps, u.preemptions - before.preemptions}
}

// What timers hold, in bytes: while they wait, and of those that were cancelled.
type memory struct{ resident, kept int64 }

// What the process has of the machine's memory, in bytes.
func resident() (bytes int64, known bool) {
	rollup, err := os.ReadFile("/proc/self/smaps_rollup")
	for _, line := range strings.Split(string(rollup), "\n") {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "Rss:" {
			return number(words[1]) * 1024, err == nil
		}
	}
	return 0, false
}
