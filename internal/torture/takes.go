package torture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Take is one take as its caller observed it. Times are in microseconds, like those of Redis.
type Take struct {
	Sent, Received int64 // Unix times
	N              int64 // units
	Allowed        bool
	Failed         bool // the take got no reply, and may have been admitted at any later time
}

func (t Take) String() string {
	outcome := "denied"
	switch {
	case t.Failed:
		outcome = "failed"
	case t.Allowed:
		outcome = "allowed"
	}
	return fmt.Sprintf("take of %d, %d to %d µs, %s", t.N, t.Sent, t.Received, outcome)
}

// Check returns an error if a limiter broke the rule: it admitted more in some interval than the rule permits, or denied
// a take without reason. takes must be all takes of one subject, in any order. The running time is proportional to the
// number of allowed takes times the number of all takes.
func Check(r Rule, takes []Take) error {
	if err := checkAdmitted(r, takes); err != nil {
		return err
	}
	return checkDenied(r, takes)
}

// checkAdmitted checks the units of allowed takes that were sent and received within each interval.
func checkAdmitted(r Rule, takes []Take) error {
	var allowed []Take
	failed := false
	for _, t := range takes {
		failed = failed || t.Failed
		if t.Allowed && !t.Failed {
			allowed = append(allowed, t)
		}
	}
	slices.SortFunc(allowed, func(a, b Take) int { return cmp.Compare(a.Received, b.Received) })
	if r.known != nil {
		if err := r.known(allowed); err != nil {
			return err
		}
	}
	if r.windows != nil && !failed { // a failed take may have begun a window
		if err := r.windows(allowed); err != nil {
			return err
		}
	}
	for _, first := range allowed {
		var units int64
		for _, t := range allowed {
			if t.Sent < first.Sent {
				continue
			}
			units += t.N
			w := micros(t.Received - first.Sent)
			if most := r.most(w); units > most {
				return fmt.Errorf("torture: %d units within %v from %d µs, where %d may pass", units, w, first.Sent, most)
			}
		}
	}
	return nil
}

// checkDenied checks that takes that may have been admitted earlier are a reason for each denial.
func checkDenied(r Rule, takes []Take) error {
	var charged []Take // the latest first
	for _, t := range takes {
		switch {
		case t.Failed:
			t.Received = math.MaxInt64
		case !t.Allowed:
			continue
		}
		charged = append(charged, t)
	}
	slices.SortFunc(charged, func(a, b Take) int { return cmp.Compare(b.Received, a.Received) })
	for _, t := range takes {
		if !t.Allowed && !t.Failed && !hasReason(r, t, charged) {
			return fmt.Errorf("torture: without reason: %v", t)
		}
	}
	return nil
}

func hasReason(r Rule, denied Take, charged []Take) bool {
	units := denied.N
	if units > r.denies(0) {
		return true
	}
	for _, t := range charged {
		if t.Sent > denied.Received {
			continue // this take was admitted later
		}
		units += t.N
		w := micros(denied.Sent - min(denied.Sent, t.Received))
		switch most := r.denies(w); {
		case units > most:
			return true
		case most == math.MaxInt64:
			return false // the other takes are older
		}
	}
	return false
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
