package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

// TestServerChoosesWindow has a client whose clock is wrong by up to a window. The end of the window is that of the
// server's time.
func TestServerChoosesWindow(t *testing.T) {
	server := testhost.StartMiniredis(t)
	s := newStore(t, server.Client(), patient)
	local := storetest.NewClock(server.Now())
	s.wall = local.Now
	r := ratelimit.Calendar(5, ratelimit.Day, newYork)
	year, month, day := server.Now().In(newYork).Date()
	midnight := func(days int) time.Time { return time.Date(year, month, day+days, 0, 0, 0, 0, newYork) }
	for _, wrong := range []time.Duration{0, -time.Microsecond, time.Hour, -time.Hour, 23 * time.Hour, -23 * time.Hour} {
		for _, day := range []int{49, 50} { // the first has 25 hours
			begin := midnight(day)
			server.Advance(begin.Sub(server.Now()))
			local.Advance(begin.Add(wrong).Sub(local.Now()))
			ops := []ratelimit.Op{takeOf(r, "k", 1), takeOf(r, "k", 1)}
			for i, res := range append(do(t, s, ops...), do(t, s, opOf(ratelimit.Take, r, "group", 1), opOf(ratelimit.Take, r.WithName("b"), "group", 1))...) {
				require.True(t, res.Allowed, "%v wrong", wrong)
				require.Equal(t, midnight(day+1).Sub(begin), res.ResetAfter, "%v wrong: %d", wrong, i)
			}
			do(t, s, opOf(ratelimit.Reset, r, "k", 0), opOf(ratelimit.Reset, r, "group", 0), opOf(ratelimit.Reset, r.WithName("b"), "group", 0))
		}
	}
}

// TestClocksThatDifferTooMuch has a client whose clock is wrong by more than a window. Every op fails and changes nothing.
func TestClocksThatDifferTooMuch(t *testing.T) {
	redis, mini := testhost.StartRedis(t).Client(nil), testhost.StartMiniredis(t)
	for name, s := range map[string]*Store{"redis": newStore(t, redis, patient), "miniredis": newStore(t, mini.Client(), patient)} {
		t.Run(name, func(t *testing.T) {
			right := storetest.NewClock(time.Now())
			if name == "miniredis" {
				right = storetest.NewClock(mini.Now())
			}
			for _, block := range []ratelimit.Block{{}, {After: 2, For: time.Hour}} {
				r := ratelimit.Calendar(5, ratelimit.Month, time.UTC).WithBlock(block)
				s.wall = right.Now
				charged := do(t, s, takeOf(r, "k", 1))[0].Receipt
				for _, wrong := range []time.Duration{63 * 24 * time.Hour, -63 * 24 * time.Hour, 1e6 * time.Hour} {
					s.wall = func() time.Time { return right.Now().Add(wrong) }
					for kind, op := range allKinds(r, charged) {
						_, err := s.DoOne(t.Context(), op)
						require.ErrorIs(t, err, ratelimit.ErrStore, kind)
						require.ErrorContains(t, err, "CLOCK the clocks of Redis and its client differ by more than a window of the calendar", kind)
					}
					do(t, s, takeOf(hourlyWindow(5), "k", 1)) // a rule without a calendar
					do(t, s, opOf(ratelimit.Reset, hourlyWindow(5), "k", 0))
				}
				s.wall = right.Now
				require.EqualValues(t, 1, do(t, s, opOf(ratelimit.Count, r, "k", 0))[0].Count)
				do(t, s, opOf(ratelimit.Reset, r, "k", 0))
			}
		})
	}
}

// TestCalendarKeys checks the names of keys. Two rules have the same key if they share their counter.
func TestCalendarKeys(t *testing.T) {
	r := ratelimit.Calendar(5, ratelimit.Month, newYork)
	require.Equal(t, "calendar:month/America/New_York", counterName(r))
	require.Equal(t, counterName(r), counterName(r.WithLimit(6)))
	require.Equal(t, "calendar:api:month/America/New_York", counterName(r.WithName("api")))
	require.Equal(t, "calendar:day/UTC", counterName(ratelimit.Calendar(5, ratelimit.Day, time.UTC)))
}
