package storetest

import (
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// event is one charge. The model keeps every one.
type event struct {
	id     int
	n      int64
	at     time.Duration // since 1970, when it was charged
	bucket int64
}

// model is one counter as the documentation defines it, by going through all events.
type model struct {
	exists bool
	newest int64 // the bucket that the time has reached; it doesn't go back
	events []event
}

// bucket returns the number of the bucket of a moment since 1970, or before.
func bucket(r ratelimit.Rule, now time.Duration) int64 {
	n := int64(now / r.Interval())
	if now%r.Interval() < 0 {
		n--
	}
	return n
}

func (m *model) see(r ratelimit.Rule, now time.Duration) {
	if m.exists {
		m.newest = max(m.newest, bucket(r, now))
	}
}

// units returns what a count over d says in the given bucket.
func (m *model) units(r ratelimit.Rule, d time.Duration, at int64) int64 {
	from := at - int64((d+r.Interval()-1)/r.Interval())
	var sum int64
	for _, e := range m.events {
		if e.bucket >= from {
			sum += e.n
		}
	}
	return sum
}

func (m *model) count(r ratelimit.Rule, d, now time.Duration) int64 {
	m.see(r, now)
	return m.units(r, d, m.newest)
}

// wait returns how long until at most allowed units are left of Per.
func (m *model) wait(r ratelimit.Rule, allowed int64, now time.Duration) time.Duration {
	if m.units(r, r.Per(), m.newest) <= allowed {
		return 0
	}
	at := m.newest
	for m.units(r, r.Per(), at) > allowed {
		at++
	}
	return time.Duration(at)*r.Interval() - now
}

func (m *model) check(r ratelimit.Rule, n int64, now time.Duration) ratelimit.Result {
	m.see(r, now)
	res := ratelimit.Result{Limit: r.Limit(), Remaining: max(0, r.Limit()-m.units(r, r.Per(), m.newest))}
	res.Allowed = n <= res.Remaining
	res.RetryAfter = m.wait(r, r.Limit()-n, now)
	res.ResetAfter = m.wait(r, 0, now)
	return res
}

func (m *model) charge(r ratelimit.Rule, id int, n int64, now time.Duration) ratelimit.Result {
	if !m.exists {
		m.exists, m.newest = true, bucket(r, now)
	}
	m.see(r, now)
	m.events = append(m.events, event{id, n, now, m.newest})
	res := m.check(r, 1, now)
	res.Allowed = true
	return res
}

func (m *model) refund(r ratelimit.Rule, id int, now time.Duration) bool {
	m.see(r, now)
	i := slices.IndexFunc(m.events, func(e event) bool {
		return e.id == id && e.bucket >= m.newest-int64(r.Span()/r.Interval())
	})
	if i < 0 {
		return false
	}
	m.events = slices.Delete(m.events, i, i+1)
	return true
}

// charged returns the units that were charged after a moment.
func (m *model) charged(after time.Duration) int64 {
	var sum int64
	for _, e := range m.events {
		if e.at > after {
			sum += e.n
		}
	}
	return sum
}
