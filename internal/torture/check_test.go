package torture_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/internal/torture"
	"github.com/lazyreq/lazyreq/ratelimit"
)

const (
	// slack is how much longer than its deadline a call may last, and how much longer than a second a recovery. To this,
	// the checks add twice the time in which this process did not run, because other processes have to catch up, too.
	slack    = 250 * time.Millisecond
	recovery = time.Second
)

// check returns a violation that the callers have observed. It checks deadlines, then recovery, and then the rules.
func (l *log) check(h *host) error {
	for s, events := range l.events {
		for _, e := range events {
			stalled := l.stalled(e.Sent, e.Received)
			if e.took() > h.deadline+slack+2*stalled {
				return fmt.Errorf("%s: waited for %v of %v, with stalls of %v: %v, %v", s.key, e.took(), h.deadline, stalled, e, e.err)
			}
		}
	}
	for _, o := range l.outages {
		for shard := range h.shards {
			if err := l.recovered(o, shard); err != nil {
				return err
			}
		}
	}
	for s, events := range l.events {
		for _, e := range events {
			if !e.Failed || l.mayFail(s.shard, e) {
				continue
			}
			busy := l.stalled(e.Sent-recovery.Microseconds(), e.Received)
			if busy == 0 || e.took() < h.deadline/2 && !h.breaks {
				return fmt.Errorf("%s: failed without a fault: %v, %v\n%v", s.key, e, e.err, l.outages)
			}
			l.excused = append(l.excused, e) // the take timed out because the machine was busy
		}
		if s.isMeter() {
			if err := l.counted(s, events); err != nil {
				return err
			}
			continue
		}
		for i, rule := range s.rules {
			if err := l.admitted(s, i, rule, events); err != nil {
				return fmt.Errorf("%s, %v: %w\n%v", s.key, rule, err, l.outages)
			}
		}
	}
	return nil
}

func (e event) took() time.Duration { return micros(e.Received - e.Sent) }

// recovered checks that the shard answered a take within a second after an outage, or before the next outage.
func (l *log) recovered(o outage, shard int) error {
	first := l.ended // if there was no other outage
	for s, events := range l.events {
		for _, e := range events {
			if s.shard == shard && !e.Failed && e.Sent >= o.ended {
				first = min(first, e.Received)
			}
		}
	}
	took := micros(first - o.ended)
	if took > l.maxRecovery(o.ended, first) {
		return fmt.Errorf("not back within %v, nor %v, with stalls of %v, after %v, shard %d: %v",
			recovery, took, l.stalled(o.ended, first), o, shard, l.lastError(shard))
	}
	return nil
}

// maxRecovery returns the maximum duration of a recovery between two times, including the stalls between them.
func (l *log) maxRecovery(from, to int64) time.Duration {
	return recovery + slack + 2*l.stalled(from, to)
}

// lastError returns the error of a shard's latest failed take.
func (l *log) lastError(shard int) (err error) {
	var latest int64
	for s, events := range l.events {
		for _, e := range events {
			if s.shard == shard && e.Failed && e.Received > latest {
				latest, err = e.Received, e.err
			}
		}
	}
	return err
}

// mayFail reports whether a fault of the shard explains that a take failed.
func (l *log) mayFail(shard int, e event) bool {
	return slices.ContainsFunc(l.outages, func(o outage) bool {
		return (o.shard == all || o.shard == shard) &&
			e.Received >= o.began && e.Sent <= o.ended+(recovery+slack+l.stalled(o.ended, e.Sent)).Microseconds()
	})
}

// admitted checks a subject's takes with one of its rules, separately for each period between faults that lost writes.
func (l *log) admitted(s *subject, i int, rule ratelimit.Rule, events []event) error {
	losses := slices.DeleteFunc(slices.Clone(l.outages), func(o outage) bool { return !o.loses(s.shard) })
	for n := range len(losses) + 1 {
		var takes []torture.Take
		var ends []int64
		for _, e := range events {
			take, kept := e.between(losses[:n], losses[n:])
			if !kept || !s.exact && !take.Allowed && !take.Failed {
				continue
			}
			takes = append(takes, take)
			if take.Allowed && !take.Failed {
				ends = append(ends, e.ends[i])
			}
		}
		if err := torture.Check(asChecked(rule, ends), takes); err != nil {
			return err
		}
	}
	return nil
}

// between returns how a take counts in the period between two losses of writes. If one of them may have lost its charge,
// it counts as failed. kept is false if it does not count in this period.
func (e event) between(earlier, later []outage) (take torture.Take, kept bool) {
	take = e.Take
	for _, o := range earlier {
		switch {
		case e.Sent >= o.ended:
		case e.Received >= o.began || o.lostFrom > 0 && e.Received >= o.lostFrom:
			take.Failed = true
		case o.lostFrom == 0:
			return take, false
		}
	}
	if len(later) > 0 && e.Received >= later[0].began {
		take.Failed = true
		return take, e.Sent < later[0].ended
	}
	return take, true
}

// asChecked converts a rule for torture.Check. ends holds the ends of the windows.
func asChecked(r ratelimit.Rule, ends []int64) torture.Rule {
	switch r.Algorithm() {
	case "buckets":
		return torture.Buckets(r.Limit(), r.Per(), r.Interval())
	case "log":
		return torture.SlidingLog(r.Limit(), r.Per())
	case "window":
		return torture.FixedWindow(r.Limit(), r.Per()).WithWindowEnds(r.Limit(), r.Per(), ends)
	}
	return torture.GCRA(r.Limit(), r.Per(), r.Burst())
}
