package redisstore

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

// oddTime is added to the first time of miniredis, which is 10^15 µs and has a format that its Lua cannot read. oddTime is
// not a multiple of an interval, and longer than the tests set the clock back.
const oddTime = time.Hour + 678_901*time.Microsecond

// slowScripts make every key live an hour longer. Redis has a clock of its own, for which a test of several days takes
// a millisecond.
var slowScripts = newScripts(`
	local real = redis
	local redis = {pcall = real.pcall, call = function(name, ...)
		local args = {...}
		for i = 2, #args do
			if name == 'PEXPIRE' or args[i - 1] == 'PX' then args[i] = args[i] + 3600000 break end
		end
		return real.call(name, unpack(args))
	end}
`)

// redisOpener returns a function that empties a Redis and returns a store on it with a manual clock.
func redisOpener(t *testing.T) func() (ratelimit.Store, storetest.Clock) {
	c := testhost.StartRedis(t).Client(nil)
	return func() (ratelimit.Store, storetest.Clock) {
		testhost.FlushAll(t, c)
		clock := storetest.NewClock(someTime)
		s := newStore(t, c, patient)
		s.clock, s.wall, s.scripts = clock.Now, clock.Now, slowScripts
		return s, clock
	}
}

// miniredisOpener returns a function that empties a miniredis and returns a store on it. The scripts read the clock of
// miniredis.
func miniredisOpener(t *testing.T) func() (ratelimit.Store, storetest.Clock) {
	server := testhost.StartMiniredis(t)
	server.Advance(oddTime)
	s, began := newStore(t, server.Client(), patient), server.Now()
	s.wall = server.Now
	return func() (ratelimit.Store, storetest.Clock) {
		server.FlushAll()
		server.Advance(began.Sub(server.Now()))
		return s, server
	}
}

func TestRedis(t *testing.T) {
	open := redisOpener(t)
	storetest.Run(t, func(*testing.T) (ratelimit.Store, storetest.Clock) { return open() }, storetest.Everything)
}

// TestMiniredis runs the suite with some of its thousand rates, because miniredis is slow.
func TestMiniredis(t *testing.T) {
	t.Parallel()
	if testenv.Racing {
		t.Skip("TestRedis runs the same Go code, and miniredis takes half a minute")
	}
	some := func(r ratelimit.Rule) bool {
		return r.Per() != time.Minute || r.Limit() < 10 || r.Limit() > 1000 || r.Limit()%50 == 0
	}
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) { return miniredisOpener(t)() }, some)
}

// TestCalendar checks some windows of 40 years. The memory store's test checks all of them.
func TestCalendar(t *testing.T) {
	for name, opener := range map[string]func(*testing.T) func() (ratelimit.Store, storetest.Clock){
		"redis": redisOpener, "miniredis": miniredisOpener,
	} {
		t.Run(name, func(t *testing.T) {
			open := opener(t)
			storetest.RunCalendar(t, func(*testing.T) (ratelimit.Store, storetest.Clock) { return open() }, 61)
		})
	}
}

// TestStoreMatchesModel searches for a short sequence of ops for which the store and the model differ.
func TestStoreMatchesModel(t *testing.T) {
	for name, opener := range map[string]func(*testing.T) func() (ratelimit.Store, storetest.Clock){
		"redis": redisOpener, "miniredis": miniredisOpener,
	} {
		t.Run(name, func(t *testing.T) {
			open := opener(t)
			rapid.Check(t, func(rt *rapid.T) {
				store, clock := open()
				s := &storetest.Sequence{
					TB: rt, Store: store, Clock: clock, Supports: storetest.Everything, Back: rapid.Bool().Draw(rt, "clock goes back"),
					Draw: func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "") },
				}
				s.Run(rapid.IntRange(1, 30).Draw(rt, "groups"))
			})
		})
	}
}
