package storetest

import (
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// event is a charge. A model keeps all events and scans all of them for each result. Times are durations since 1970.
type event struct {
	id int
	n  int64
	at time.Duration // the time from which the event counts: at least charged, and at least the time of an earlier event

	charged time.Duration  // the time that the clock showed
	ahead   time.Duration  // the op's Prepaid
	bucket  int64          // for buckets: the number of the bucket
	end     time.Duration  // for a fixed window: the end of the window
	rule    ratelimit.Rule // the op's rule; several rules may share the counter
	level   *big.Int       // for a GCRA: the level after the charge
}

// model is a simple implementation of a counter, as the documentation defines it.
type model interface {
	// remaining returns the largest n that a take at the time may have, if nothing else is charged until then.
	remaining(r ratelimit.Rule, at time.Duration) int64
	// addCharge adds e. The caller sets its id, n, charged, ahead and rule.
	addCharge(e event)
	// count returns the number of units in the last d.
	count(r ratelimit.Rule, d, now time.Duration) int64
	// refund removes n units from the charge with the id. It reports whether the model still has the charge.
	refund(r ratelimit.Rule, id int, n int64, now time.Duration) bool
}

func newModel(r ratelimit.Rule) model {
	switch r.Algorithm() {
	case "buckets":
		return &bucketModel{}
	case "log":
		return &logModel{}
	case "window":
		return &windowModel{}
	default:
		return &gcraModel{}
	}
}

// modelResult returns the result of a take of n units, and charges nothing. It finds the waiting times by a search.
func modelResult(m model, r ratelimit.Rule, n int64, now time.Duration) ratelimit.Result {
	if r.Limit() == 0 {
		return ratelimit.Result{Allowed: true}
	}
	res := ratelimit.Result{Limit: r.Limit(), Remaining: m.remaining(r, now)}
	res.Allowed = n <= res.Remaining
	res.RetryAfter = firstTime(func(d time.Duration) bool { return m.remaining(r, now+d) >= n })
	res.ResetAfter = firstTime(func(d time.Duration) bool { return m.remaining(r, now+d) >= r.Burst() })
	if r.Layout().Concurrent {
		res.RetryAfter, res.ResetAfter = min(res.RetryAfter, time.Second), min(res.ResetAfter, time.Second)
	}
	return res
}

// firstTime returns the shortest duration, in whole microseconds, for which f is true. f must be true for all longer
// durations, too.
func firstTime(f func(time.Duration) bool) time.Duration {
	if f(0) {
		return 0
	}
	n := sort.Search(1<<42, func(i int) bool { return f(time.Duration(i) * time.Microsecond) })
	return time.Duration(n) * time.Microsecond
}

// bucketModel is a model of Buckets.
type bucketModel struct {
	exists bool
	newest int64 // number of the bucket of the latest charge or refund; it never decreases
	events []event
}

// bucketNumber returns the number of the bucket that contains a time, which may be before 1970.
func bucketNumber(r ratelimit.Rule, now time.Duration) int64 {
	n := int64(now / r.Interval())
	if now%r.Interval() < 0 {
		n--
	}
	return n
}

// newestBucket returns the number of the counter's newest bucket at the time now.
func (m *bucketModel) newestBucket(r ratelimit.Rule, now time.Duration) int64 {
	if m.exists {
		return max(m.newest, bucketNumber(r, now))
	}
	return bucketNumber(r, now)
}

func (m *bucketModel) unitsIn(r ratelimit.Rule, d, now time.Duration) int64 {
	from := m.newestBucket(r, now) - int64((d+r.Interval()-1)/r.Interval())
	return sumUnits(m.events, func(e event) bool { return e.bucket >= from })
}

func sumUnits(events []event, counts func(event) bool) (sum int64) {
	for _, e := range events {
		if counts(e) {
			sum += e.n
		}
	}
	return sum
}

func (m *bucketModel) remaining(r ratelimit.Rule, at time.Duration) int64 {
	return max(0, r.Limit()-m.unitsIn(r, r.Per(), at))
}

func (m *bucketModel) addCharge(e event) {
	m.newest, m.exists = m.newestBucket(e.rule, e.charged), true
	e.bucket = m.newest
	m.events = append(m.events, e)
}

func (m *bucketModel) count(r ratelimit.Rule, d, now time.Duration) int64 {
	return m.unitsIn(r, d, now)
}

func (m *bucketModel) refund(r ratelimit.Rule, id int, n int64, now time.Duration) bool {
	newest := m.newestBucket(r, now)
	if !removeUnits(m.events, n, func(e event) bool { return e.id == id && e.bucket >= newest-int64(r.Span()/r.Interval()) }) {
		return false
	}
	m.newest = newest
	return true
}

func removeUnits(events []event, n int64, which func(event) bool) bool {
	i := slices.IndexFunc(events, which)
	if i >= 0 {
		events[i].n -= n
	}
	return i >= 0
}

// logModel is a model of a SlidingLog. A charge removes the events that no longer count.
type logModel struct{ events []event }

func (m *logModel) count(_ ratelimit.Rule, d, now time.Duration) int64 {
	return sumUnits(m.events, func(e event) bool { return now-e.at < d })
}

func (m *logModel) remaining(r ratelimit.Rule, at time.Duration) int64 {
	return max(0, r.Limit()-m.count(r, r.Per(), at))
}

func (m *logModel) addCharge(e event) {
	e.at = e.charged + e.ahead
	m.events = slices.DeleteFunc(m.events, func(old event) bool { return old.n == 0 || e.charged-old.at >= e.rule.Per() })
	for _, old := range m.events {
		e.at = max(e.at, old.at)
	}
	m.events = append(m.events, e)
}

func (m *logModel) refund(r ratelimit.Rule, id int, n int64, now time.Duration) bool {
	return removeUnits(m.events, n, func(e event) bool { return e.id == id && now-e.at < r.Per() })
}

// windowModel is a model of a FixedWindow and of a Calendar.
type windowModel struct {
	end    time.Duration
	open   bool
	events []event
}

func (m *windowModel) count(_ ratelimit.Rule, _, now time.Duration) int64 {
	return sumUnits(m.events, func(e event) bool { return m.open && now < m.end && e.end == m.end })
}

func (m *windowModel) remaining(r ratelimit.Rule, at time.Duration) int64 {
	return max(0, r.Limit()-m.count(r, 0, at))
}

func (m *windowModel) addCharge(e event) {
	if !m.open || e.charged >= m.end {
		m.open, m.end = true, windowEnd(e.rule, e.charged)
	}
	e.end = m.end
	m.events = append(m.events, e)
}

func (m *windowModel) refund(_ ratelimit.Rule, id int, n int64, now time.Duration) bool {
	return now < m.end && removeUnits(m.events, n, func(e event) bool { return e.id == id && e.end == m.end })
}

// gcraModel is a model of a GCRA: a leaky bucket with an exact level.
type gcraModel struct{ events []event }

// level returns the level after the newest charge and the time of this charge. A unit raises the level by Per in
// microseconds, and the level falls by Limit in each microsecond.
func (m *gcraModel) level() (*big.Int, time.Duration) {
	level, at := new(big.Int), time.Duration(0)
	for i, e := range m.events {
		if i > 0 {
			level = levelAfter(level, e.rule, e.at-at)
		}
		if lift := bigProduct(e.ahead.Microseconds(), e.rule.Limit()); level.Cmp(lift) < 0 {
			level = lift
		}
		level.Add(level, bigProduct(e.n, e.rule.Per().Microseconds()))
		at = e.at
	}
	return level, at
}

func bigProduct(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// levelAfter returns the level that is left of level after d, if it falls at the rate of r.
func levelAfter(level *big.Int, r ratelimit.Rule, d time.Duration) *big.Int {
	left := new(big.Int).Sub(level, bigProduct(max(0, d.Microseconds()), r.Limit()))
	if left.Sign() < 0 {
		left.SetInt64(0)
	}
	return left
}

// ruleUnlessEmpty returns r, or the rule of the last charge if the level has fallen to 0 at that rule's rate. The store may
// then have forgotten the counter, so other rules could get different results.
func (m *gcraModel) ruleUnlessEmpty(r ratelimit.Rule, now time.Duration) ratelimit.Rule {
	level, at := m.level()
	if len(m.events) > 0 {
		if last := m.events[len(m.events)-1].rule; levelAfter(level, last, now-at).Sign() == 0 {
			return last
		}
	}
	return r
}

func (m *gcraModel) remaining(r ratelimit.Rule, at time.Duration) int64 {
	level, since := m.level()
	room := bigProduct(r.Burst(), r.Per().Microseconds())
	if len(m.events) > 0 {
		room.Sub(room, levelAfter(level, r, at-since))
	}
	if room.Sign() <= 0 {
		return 0
	}
	return room.Div(room, big.NewInt(r.Per().Microseconds())).Int64()
}

func (m *gcraModel) addCharge(e event) {
	e.at = e.charged
	if n := len(m.events); n > 0 {
		e.at = max(e.at, m.events[n-1].at)
	}
	m.events = append(m.events, e)
	m.events[len(m.events)-1].level, _ = m.level()
}

func (m *gcraModel) count(ratelimit.Rule, time.Duration, time.Duration) int64 { return 0 }

// refund works only if the counter is in the state that the charge left. If the refund leaves level 0, the model forgets
// all events.
func (m *gcraModel) refund(r ratelimit.Rule, id int, n int64, now time.Duration) bool {
	i := slices.IndexFunc(m.events, func(e event) bool { return e.id == id })
	if i < 0 {
		return false
	}
	level, at := m.level()
	if level.Cmp(m.events[i].level) != 0 || at != m.events[i].at || levelAfter(level, r, now-at).Sign() == 0 {
		return false
	}
	m.events[i].n -= n
	if m.leavesNoTrace(i) {
		m.events = slices.Delete(m.events, i, i+1)
	}
	if level, _ := m.level(); level.Sign() == 0 {
		m.events = nil
	}
	return true
}

// leavesNoTrace reports whether a complete refund of event i restores the state before the event.
func (m *gcraModel) leavesNoTrace(i int) bool {
	e := m.events[i]
	if i == 0 || e.n > 0 || e.at != m.events[i-1].at {
		return false
	}
	before, _ := (&gcraModel{m.events[:i]}).level()
	return before.Cmp(bigProduct(e.ahead.Microseconds(), e.rule.Limit())) >= 0
}

// blockModel is a model of a counter's Block.
type blockModel struct {
	denials []time.Duration
	until   time.Duration
	begun   bool
}

func (m *blockModel) timeLeft(now time.Duration) time.Duration {
	if !m.begun {
		return 0
	}
	return max(0, m.until-now)
}

func (m *blockModel) countDenial(r ratelimit.Rule, now time.Duration) {
	if m.timeLeft(now) > 0 {
		return
	}
	m.begun = false
	if len(m.denials) > 0 && now-m.denials[0] >= r.Per() {
		m.denials = nil
	}
	if m.denials = append(m.denials, now); len(m.denials) == r.Block().After {
		*m = blockModel{until: now + r.Block().For, begun: true}
	}
}

// applyBlock makes res a denial if a block has time left.
func applyBlock(res *ratelimit.Result, left time.Duration) {
	if left > 0 {
		res.Allowed, res.Remaining = false, 0
		res.RetryAfter, res.ResetAfter = max(res.RetryAfter, left), max(res.ResetAfter, left)
	}
}
