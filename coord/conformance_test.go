package coord_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/coordtest"
	"github.com/lazyreq/lazyreq/internal/redismini"
	"github.com/lazyreq/lazyreq/internal/redistest"
)

func TestMemoryIsAStore(t *testing.T) {
	coordtest.Run(t, coordtest.Host{
		Open:    func(t *testing.T) coordtest.Store { return newMemory(t, coord.MemoryOptions{}) },
		Advance: func(_ *testing.T, d time.Duration) { pass(d) }, // the bubble's clock
		Within:  synctest.Test,
	})
}

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestRedisIsAStore(t *testing.T) {
	server := redistest.Start(t)
	for name, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(name, func(t *testing.T) {
			c := server.Client(func(o *redis.Options) { o.Protocol = protocol })
			coordtest.Run(t, aging(c, c))
		})
	}
}

func TestRedisClusterIsAStore(t *testing.T) {
	c := redistest.StartCluster(t).Client(nil)
	coordtest.Run(t, aging(c, c))
}

func TestRedisBehindASentinelIsAStore(t *testing.T) {
	c := redistest.StartSentinel(t).Client(nil)
	coordtest.Run(t, aging(c, c))
}

// aging lets time pass on a real server by making everything in it older. It has one client
// for the store, and another that may do everything.
func aging(c, admin redis.UniversalClient) coordtest.Host {
	return coordtest.Host{
		Unit: time.Minute,
		Open: func(t *testing.T) coordtest.Store {
			redistest.FlushAll(t, admin)
			return newRedis(t, c, patient)
		},
		Advance: func(t *testing.T, d time.Duration) { redistest.Age(t, admin, older, d) },
	}
}

// older makes a token or a lease ARGV[1] µs older. Its expiry loses the millisecond, too, by
// which it may have been rounded up.
var older = redis.NewScript(`
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return redis.error_reply('NOEXPIRY a key without expiry') end
for _, field in ipairs({'issued', 'expires', 'forgotten', 'used', 'revoked', 'since', 'until', 'latest'}) do
  if redis.call('HEXISTS', KEYS[1], field) == 1 then redis.call('HINCRBY', KEYS[1], field, '-' .. ARGV[1]) end
end
return redis.call('PEXPIRE', KEYS[1], left - ARGV[1] / 1000 - 1)`)

// TestMiniredisIsAStore turns the server's clock, which is far from this machine's.
func TestMiniredisIsAStore(t *testing.T) {
	var server *redismini.Server
	coordtest.Run(t, coordtest.Host{
		Open: func(t *testing.T) coordtest.Store {
			server = redismini.Start(t)
			return newRedis(t, server.Client(), patient)
		},
		Advance: func(_ *testing.T, d time.Duration) {
			server.Advance(d)
			server.FastForward(d)
		},
	})
}
