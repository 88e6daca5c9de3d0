package record

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// disturbing is the share of the machine's processor time from which other programs disturb a run.
const disturbing = 0.05

// shortest is the shortest interval for which there is a share, in ticks of all processors.
const shortest = 100

// Watch returns a function that ends an interval when it is called. It returns the largest share of the machine's
// processor time that other programs, or other virtual machines, have used in an interval so far. This process and those
// that it has started are not others. An interval of less than a second of one processor continues. The share is 0 on
// systems without a Linux /proc.
func Watch() (others func() float64) {
	return watch("/proc", os.Getpid())
}

func watch(proc string, pid int) (others func() float64) {
	before, all := ticksOfOthers(proc, pid)
	most := 0.0
	return func() float64 {
		after, now := ticksOfOthers(proc, pid)
		if now-all >= shortest {
			most = max(most, float64(after-before)/float64(now-all))
			before, all = after, now
		}
		return most
	}
}

// ticksOfOthers returns the processor time since the machine's start that other programs have used, and that of all
// programs together with the idle time. The time of interrupts is not counted as that of others, because this process's
// packets cause some of them.
func ticksOfOthers(proc string, pid int) (others, all int64) {
	const user, nice, system, steal = 0, 1, 2, 7 // their places
	machine := fields(filepath.Join(proc, "stat"), "cpu ")
	if len(machine) <= steal {
		return 0, 0
	}
	for _, t := range machine[:steal+1] {
		all += t
	}
	return machine[user] + machine[nice] + machine[system] + machine[steal] - ticksOf(proc, pid), all
}

// ticksOf returns the processor time of a process and of all that it has started.
func ticksOf(proc string, pid int) (ticks int64) {
	paths, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat")) // the pattern is right
	family := []int64{int64(pid)}
	stats := make(map[int64][]int64, len(paths)) // by process
	for _, path := range paths {
		if id, err := strconv.ParseInt(filepath.Base(filepath.Dir(path)), 10, 64); err == nil {
			stats[id] = fields(path, ") ")
		}
	}
	const parent, utime, cstime = 0, 10, 13 // after the name and the state
	for i := 0; i < len(family); i++ {
		for id, s := range stats {
			if len(s) > cstime && s[parent] == family[i] && !slices.Contains(family, id) {
				family = append(family, id)
			}
		}
		if s := stats[family[i]]; len(s) > cstime {
			for _, t := range s[utime : cstime+1] { // including the children that have ended
				ticks += t
			}
		}
	}
	return ticks
}

// fields returns the numbers after a mark in the first line of a file.
func fields(path, mark string) (list []int64) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if i := strings.LastIndex(line, mark); i >= 0 {
		line = line[i+len(mark):]
	}
	for word := range strings.FieldsSeq(line) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			list = append(list, n)
		}
	}
	return list
}
