package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

// oddTime is not a multiple of an interval. A clock that goes back by it stays above 10^15 µs, which miniredis would write as
// a number that its Lua cannot read.
const oddTime = time.Hour + 678_901*time.Microsecond

// slowScripts are the scripts for a Redis whose clock is not the one of the test, with keys
// that outlive it: for Redis, a test of days passes within a millisecond.
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

func TestRedis(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		require.NoError(t, c.FlushAll(t.Context()).Err())
		clock := storetest.NewClock(someTime)
		s := newStore(t, c, patient)
		s.clock, s.scripts = clock.Now, slowScripts
		return s, clock
	}, storetest.Everything)
}

// TestMiniredis is the suite with the server's clock under control, so that the
// scripts read it themselves. It is slow, and so it has only some of a thousand rates.
func TestMiniredis(t *testing.T) {
	t.Parallel()
	if testenv.Racing {
		t.Skip("the store's Go is that of TestRedis, and miniredis takes half a minute")
	}
	some := func(r ratelimit.Rule) bool {
		return r.Per() != time.Minute || r.Limit() < 10 || r.Limit() > 1000 || r.Limit()%50 == 0
	}
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		server := testhost.StartMiniredis(t)
		server.Advance(oddTime)
		return newStore(t, server.Client(), patient), server
	}, some)
}

// TestRedisMatchesModel and TestMiniredisMatchesModel search for a short sequence of ops
// for which Redis and the model differ.
func TestRedisMatchesModel(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	isTheModel(t, func(rt *rapid.T) (ratelimit.Store, storetest.Clock) {
		require.NoError(rt, c.FlushAll(t.Context()).Err())
		clock := storetest.NewClock(someTime)
		s := newStore(t, c, patient)
		s.clock, s.scripts = clock.Now, slowScripts
		return s, clock
	})
}

func TestMiniredisMatchesModel(t *testing.T) {
	server := testhost.StartMiniredis(t)
	server.Advance(oddTime)
	c, began := server.Client(), server.Now()
	isTheModel(t, func(*rapid.T) (ratelimit.Store, storetest.Clock) {
		server.FlushAll()
		server.Advance(began.Sub(server.Now()))
		return newStore(t, c, patient), server
	})
}

func isTheModel(t *testing.T, open func(*rapid.T) (ratelimit.Store, storetest.Clock)) {
	rapid.Check(t, func(rt *rapid.T) {
		store, clock := open(rt)
		s := &storetest.Sequence{
			TB: rt, Store: store, Clock: clock, Supports: storetest.Everything, Back: rapid.Bool().Draw(rt, "clock goes back"),
			Draw: func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "") },
		}
		s.Run(rapid.IntRange(1, 30).Draw(rt, "groups"))
	})
}

func onRedis(t *testing.T) (*Store, *storetest.ManualClock) {
	clock := storetest.NewClock(time.Unix(1_000_000_000, 0))
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	s.clock = clock.Now
	return s, clock
}
