package redisstore_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// leaseHold is a lease as its worker observed it. All processes have the same clock.
type leaseHold struct {
	User    string
	Process int
	Number  int64
	From    time.Time // a time after the lease was granted
	To      time.Time // a time before the last check that found the lease held
}

func (h leaseHold) String() string {
	return fmt.Sprintf("process %d, number %d, %s to %s", h.Process, h.Number, h.From.Format(clock), h.To.Format(clock))
}

const clock = "05.000000"

// leaseWrite is a write to a fenced target, which accepts no number below the largest it has seen.
type leaseWrite struct {
	User     string
	Process  int
	Number   int64
	Order    int64 // the place among all writes for this user
	Accepted bool
}

// leaseRun has all observations between two times.
type leaseRun struct {
	Users      []string
	From, To   time.Time
	Holds      []leaseHold
	Writes     []leaseWrite
	Unattended time.Duration // the maximum time for which a user may have no holder
}

// checkLeases returns an error if the observations contradict the guarantees. It checks for two holders and
// wrong numbers first, then writes, then users without a holder.
func checkLeases(r leaseRun) error {
	for _, check := range []func(user string) error{r.checkExclusive, r.checkFencing, r.checkAttended} {
		for _, user := range r.Users {
			if err := check(user); err != nil {
				return fmt.Errorf("%s: %w", user, err)
			}
		}
	}
	return nil
}

// holdsOf returns the user's holds in the order of their times.
func (r *leaseRun) holdsOf(user string) []leaseHold {
	holds := slices.DeleteFunc(slices.Clone(r.Holds), func(h leaseHold) bool { return h.User != user })
	slices.SortFunc(holds, func(a, b leaseHold) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	return holds
}

// checkExclusive checks that a user's holds do not overlap, and that their numbers grow.
func (r *leaseRun) checkExclusive(user string) error {
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

// checkAttended checks that the lease is never without a holder for a long time.
func (r *leaseRun) checkAttended(user string) error {
	last := r.From
	for _, h := range append(r.holdsOf(user), leaseHold{From: r.To}) {
		if gap := h.From.Sub(last); gap > r.Unattended {
			return fmt.Errorf("no holder for %v from %s, want at most %v", gap, last.Format(clock), r.Unattended)
		}
		last = h.To
	}
	return nil
}

// checkFencing checks that writes were accepted in the order of their numbers, and that each number belongs
// to one process.
func (r *leaseRun) checkFencing(user string) error {
	writes := slices.DeleteFunc(slices.Clone(r.Writes), func(w leaseWrite) bool { return w.User != user })
	slices.SortFunc(writes, func(a, b leaseWrite) int { return cmp.Compare(a.Order, b.Order) })
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

func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func hold(process int, number int64, from, to float64) leaseHold {
	return leaseHold{User: "u", Process: process, Number: number, From: at(from), To: at(to)}
}

func TestCheckLeases(t *testing.T) {
	good := []leaseHold{hold(2, 7, 3, 4), hold(1, 5, 1, 2), hold(3, 9, 4, 6), hold(1, 8, 4, 4)}
	for name, tt := range map[string]struct {
		holds  []leaseHold
		writes []leaseWrite
		want   string
	}{
		"good":                  {holds: good},
		"overlap":               {holds: append(good[:3:3], hold(4, 8, 3.9, 4)), want: "two holders at once"},
		"inside another":        {holds: append(good[:3:3], hold(4, 8, 3.2, 3.3)), want: "two holders at once"},
		"overlap in one":        {holds: append(good[:3:3], hold(2, 8, 3.9, 4)), want: "two holders at once"},
		"a number again":        {holds: append(good[:3:3], hold(4, 9, 6, 7)), want: "numbers that don't grow"},
		"a smaller number":      {holds: append(good[:3:3], hold(4, 6, 6, 7)), want: "numbers that don't grow"},
		"no holder at first":    {holds: good[2:3], want: "no holder for 4s"},
		"no holder in between":  {holds: []leaseHold{good[1], hold(3, 9, 4.25, 6)}, want: "no holder for 2.25s"},
		"no holder for a while": {holds: []leaseHold{good[1], good[2]}},
		"no holder at the end":  {holds: good[:2], want: "no holder for 4s"},
		"no holder at all":      {want: "no holder for 8s"},
		"another's":             {holds: append(good[:4:4], leaseHold{User: "v", From: at(1), To: at(9)})},
		"refused":               {holds: good, writes: []leaseWrite{{"u", 1, 5, 3, false}, {"u", 1, 5, 1, true}, {"u", 2, 7, 2, true}}},
		"accepted too late":     {holds: good, writes: []leaseWrite{{"u", 1, 5, 3, true}, {"u", 1, 5, 1, true}, {"u", 2, 7, 2, true}}, want: "accepted after"},
		"of two processes":      {holds: good, writes: []leaseWrite{{"u", 1, 5, 1, true}, {"u", 2, 5, 2, true}}, want: "of the processes 1 and 2"},
		"of another's number":   {holds: good, writes: []leaseWrite{{"u", 1, 5, 1, true}, {"v", 2, 5, 2, true}}},
	} {
		err := checkLeases(leaseRun{
			Users: []string{"u"}, From: at(0), To: at(8), Unattended: 2 * time.Second, Holds: tt.holds, Writes: tt.writes,
		})
		if tt.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, tt.want, name)
		}
	}
}
