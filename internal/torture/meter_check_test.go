package torture_test

import (
	"fmt"
	"slices"
	"time"
)

// counted checks that a meter's counts include each acknowledged add, unless a fault may have lost it. Apart from
// these, the counts may include only adds without a reply.
func (l *log) counted(s *subject, events []event) error {
	for i, c := range events {
		if c.interval == 0 || c.Failed {
			continue
		}
		least, most := c.N, c.N // the call adds and counts in one step
		for j, add := range events {
			if i == j {
				continue
			}
			if l.mustCount(s.shard, c, add) {
				least += add.N
			}
			if mayCount(c, add, s.rules[0].Interval()) {
				most += add.N
			}
		}
		if c.count < least || c.count > most {
			return fmt.Errorf("%s: counted %d in the last %v, want %d to %d: %d to %d\n%v",
				s.key, c.count, c.interval, least, most, c.Sent, c.Received, l.outages)
		}
	}
	return nil
}

// mustCount reports whether a count must include an add: the add was made before the count and within its interval, and
// no fault may have lost it.
func (l *log) mustCount(shard int, c, add event) bool {
	if add.Failed || add.Received > c.Sent || micros(c.Received-add.Sent) >= c.interval {
		return false
	}
	return !slices.ContainsFunc(l.outages, func(o outage) bool {
		return o.loses(shard) && c.Received >= o.began && add.Sent <= o.ended && add.Received >= o.lostFrom
	})
}

// mayCount reports whether a count may include an add. The interval of a count may be up to two buckets longer.
func mayCount(c, add event, bucket time.Duration) bool {
	return add.Sent <= c.Received && (add.Failed || micros(c.Sent-add.Received) <= c.interval+2*bucket)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
