package storetest

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata" // for machines without zone files

	"github.com/lazyreq/lazyreq/ratelimit"
)

// These locations change their clocks in different ways: by an hour, by an hour at midnight, by half an hour, and by a whole
// day (Apia had no 30 December 2011).
var (
	berlin   = zone("Europe/Berlin")
	newYork  = zone("America/New_York")
	saoPaulo = zone("America/Sao_Paulo")
	lordHowe = zone("Australia/Lord_Howe")
	apia     = zone("Pacific/Apia")

	zones = []*time.Location{time.UTC, berlin, newYork, saoPaulo, lordHowe, apia}
)

func zone(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return loc
}

// periodNumber returns a number that grows from each period to the next.
func periodNumber(p ratelimit.Period, t time.Time) int {
	year, month, day := t.Date()
	switch p {
	case ratelimit.Day:
		return year*10000 + int(month)*100 + day
	case ratelimit.Week:
		year, week := t.ISOWeek()
		return year*100 + week
	default:
		return year*100 + int(month)
	}
}

// nextBoundary returns the first time after t at which a period of the location begins. It looks at a clock each half hour,
// which is enough for zones.
func nextBoundary(p ratelimit.Period, loc *time.Location, t time.Time) time.Time {
	const step = 30 * time.Minute
	present := periodNumber(p, t.In(loc))
	for t = t.Truncate(step); periodNumber(p, t.In(loc)) <= present; {
		t = t.Add(step)
	}
	return t
}

// windowEnd returns the end of a window that a charge opens.
func windowEnd(r ratelimit.Rule, charged time.Duration) time.Duration {
	l := r.Layout()
	if l.Period == 0 {
		return charged + r.Per()
	}
	end := nextBoundary(l.Period, l.Location, time.UnixMicro(charged.Microseconds()))
	return time.Duration(end.UnixMicro()) * time.Microsecond
}

// RunCalendar checks the windows of rules of the calendar over 40 years, at the boundaries and a microsecond before and
// after. It checks one of so many windows, and all that are longer or shorter than usual.
func RunCalendar(t *testing.T, open Open, every int) {
	forEachCalendar(func(r ratelimit.Rule) {
		t.Run(r.String(), func(t *testing.T) {
			store, clock := open(t)
			from := time.Date(2010, 1, 1, 0, 0, 0, 0, r.Layout().Location)
			harness{t, store, clock, Everything}.checkWindows(r, from, 40, every)
		})
	})
}

// testCalendar is a short form of RunCalendar that begins at the time of the clock.
func testCalendar(h harness) {
	forEachCalendar(func(r ratelimit.Rule) {
		if h.supports(r) {
			h.checkWindows(r, h.clock.Now(), 1, 5)
		}
	})
}

// forEachCalendar calls f with a rule of one unit for each location and period.
func forEachCalendar(f func(ratelimit.Rule)) {
	for _, loc := range zones {
		for _, p := range []ratelimit.Period{ratelimit.Day, ratelimit.Week, ratelimit.Month} {
			f(ratelimit.Calendar(1, p, loc))
		}
	}
}

// checkWindows checks windows of the years from a time on.
func (h harness) checkWindows(r ratelimit.Rule, from time.Time, years, every int) {
	l := r.Layout()
	begin, end := from, nextBoundary(l.Period, l.Location, from)
	for i := 0; begin.Before(from.AddDate(years, 0, 0)); i++ {
		begin, end = end, nextBoundary(l.Period, l.Location, end)
		if end.Sub(begin) != r.Per() || i%every == 0 {
			h.checkWindow(r, begin, end)
		}
	}
}

// checkWindow charges counters at the first, the second and the last microsecond of a window.
func (h harness) checkWindow(r ratelimit.Rule, begin, end time.Time) {
	h.Helper()
	for i, at := range []time.Time{begin, begin.Add(time.Microsecond), end.Add(-time.Microsecond)} {
		h.clock.Advance(at.Sub(h.clock.Now()))
		what := fmt.Sprintf("%v at %v", r, at.In(r.Layout().Location))
		res := h.doOne(ratelimit.Take, r, fmt.Sprint("counter", i), 1)
		requireEqual(h, what+": Allowed", res.Allowed, true)
		requireEqual(h, what+": ResetAfter", res.ResetAfter, end.Sub(at))
	}
	res := h.doOne(ratelimit.Take, r, "counter0", 1)
	requireEqual(h, "the end of the window: Allowed", res.Allowed, false)
	requireEqual(h, "the end of the window: RetryAfter", res.RetryAfter, time.Microsecond)
}

// testCalendarCounters checks which rules of the calendar share a counter, and refunds and a clock that goes back at a
// boundary.
func testCalendarCounters(h harness) {
	r := ratelimit.Calendar(10, ratelimit.Day, berlin)
	if !h.supports(r) {
		return
	}
	others := []ratelimit.Rule{
		ratelimit.Calendar(10, ratelimit.Week, berlin), ratelimit.Calendar(10, ratelimit.Day, newYork),
		ratelimit.FixedWindow(10, 24*time.Hour), r.WithName("other"),
	}
	toBoundary := func(less time.Duration) {
		h.clock.Advance(nextBoundary(ratelimit.Day, berlin, h.clock.Now()).Sub(h.clock.Now()) - less)
	}
	toBoundary(time.Second)
	charge := h.doOne(ratelimit.Take, r, "k", 4).Receipt
	for _, other := range others {
		requireEqual(h, "Remaining of "+other.String(), h.doOne(ratelimit.Peek, other, "k", 1).Remaining, 10)
	}
	requireEqual(h, "Remaining of another limit", h.doOne(ratelimit.Peek, r.WithLimit(7), "k", 1).Remaining, 3)
	part := charge
	part.N = 1
	requireEqual(h, "refund", h.refund(r, "k", part), true)
	requireEqual(h, "count", h.count(r, "k", 0), 3)

	op := ratelimit.Op{Rule: r, Key: "prepaid", N: 1, Kind: ratelimit.Take, Prepaid: time.Minute}
	requireEqual(h, "ValidFor", op.ValidFor(h.do(op)[0]), time.Second-time.Microsecond)

	toBoundary(0)
	requireEqual(h, "refund after the boundary", h.refund(r, "k", charge), false)
	requireEqual(h, "Remaining after the boundary", h.doOne(ratelimit.Take, r, "k", 2).Remaining, 8)
	toBoundary(0)
	charge = h.doOne(ratelimit.Take, r, "k", 10).Receipt
	h.clock.Advance(-time.Second) // the counter stays in the newest window
	requireEqual(h, "Allowed after the clock went back", h.doOne(ratelimit.Peek, r, "k", 1).Allowed, false)
	requireEqual(h, "refund after the clock went back", h.refund(r, "k", charge), true)
}
