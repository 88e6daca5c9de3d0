// Package leasecheck checks the guarantees of leases from what workers in many processes observed: one
// holder at a time, fencing numbers that grow, and no user without a holder for long. It does not depend
// on an implementation.
package leasecheck

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Hold is one lease as its worker observed it. All processes share the clock of the times.
type Hold struct {
	User    string
	Process int
	Number  int64
	From    time.Time // after it was granted
	To      time.Time // before the last check in which the worker held it
}

func (h Hold) String() string {
	return fmt.Sprintf("process %d, number %d, %s to %s", h.Process, h.Number, h.From.Format(clock), h.To.Format(clock))
}

const clock = "05.000000"

// Write is one write to a fenced target, which accepts no number below the largest it has seen.
type Write struct {
	User     string
	Process  int
	Number   int64
	Order    int64 // of the writes for this user
	Accepted bool
}

// Run is the observations between two times.
type Run struct {
	Users      []string
	From, To   time.Time
	Holds      []Hold
	Writes     []Write
	Unattended time.Duration // how long a user may have no holder
}

// Check returns an error if the observations contradict the guarantees. It checks for two holders and
// wrong numbers first, then writes, then users without a holder.
func Check(r Run) error {
	for _, check := range []func(user string) error{r.checkExclusive, r.checkFencing, r.checkAttended} {
		for _, user := range r.Users {
			if err := check(user); err != nil {
				return fmt.Errorf("leasecheck: %s: %w", user, err)
			}
		}
	}
	return nil
}

// holdsOf returns a user's holds, in order.
func (r *Run) holdsOf(user string) []Hold {
	holds := slices.DeleteFunc(slices.Clone(r.Holds), func(h Hold) bool { return h.User != user })
	slices.SortFunc(holds, func(a, b Hold) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	return holds
}

// checkExclusive checks that holds don't overlap and have numbers that grow.
func (r *Run) checkExclusive(user string) error {
	holds := r.holdsOf(user)
	for i := 1; i < len(holds); i++ {
		before, h := holds[i-1], holds[i]
		switch {
		case h.From.Before(before.To):
			return fmt.Errorf("two holders at once: %v, and %v", before, h)
		case h.Number <= before.Number:
			return fmt.Errorf("numbers that don't grow: %v, and then %v", before, h)
		}
	}
	return nil
}

// checkAttended checks that there is no long time without a holder.
func (r *Run) checkAttended(user string) error {
	last := r.From
	for _, h := range append(r.holdsOf(user), Hold{From: r.To}) {
		if gap := h.From.Sub(last); gap > r.Unattended {
			return fmt.Errorf("no holder for %v from %s, want at most %v", gap, last.Format(clock), r.Unattended)
		}
		last = h.To
	}
	return nil
}

// checkFencing checks that writes were accepted in the order of their numbers, and that each number belongs
// to one process.
func (r *Run) checkFencing(user string) error {
	writes := slices.DeleteFunc(slices.Clone(r.Writes), func(w Write) bool { return w.User != user })
	slices.SortFunc(writes, func(a, b Write) int { return cmp.Compare(a.Order, b.Order) })
	process := make(map[int64]int)
	var largest int64
	for _, w := range writes {
		if of, seen := process[w.Number]; seen && of != w.Process {
			return fmt.Errorf("number %d is of the processes %d and %d", w.Number, of, w.Process)
		}
		process[w.Number] = w.Process
		if w.Accepted && w.Number < largest {
			return fmt.Errorf("a write with number %d was accepted after one with %d", w.Number, largest)
		}
		largest = max(largest, w.Number)
	}
	return nil
}
