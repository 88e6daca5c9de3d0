package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/coord/storetest"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestRedisConformsToStore(t *testing.T) {
	server := testhost.StartRedis(t)
	for name, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(name, func(t *testing.T) {
			c := server.Client(func(o *redis.Options) { o.Protocol = protocol })
			storetest.Run(t, aging(c, c))
		})
	}
}

func TestRedisClusterConformsToStore(t *testing.T) {
	t.Parallel()
	c := testhost.StartCluster(t).Client(nil)
	storetest.Run(t, aging(c, c))
}

func TestRedisSentinelConformsToStore(t *testing.T) {
	c := testhost.StartSentinel(t).Client(nil)
	storetest.Run(t, aging(c, c))
}

// aging returns a host with a real server. To let time pass, it makes all tokens and leases in the server older. The
// store uses the client c. The client admin may run all commands.
func aging(c, admin redis.UniversalClient) storetest.Host {
	return storetest.Host{
		Unit: time.Minute,
		Open: func(t *testing.T) storetest.Store {
			testhost.FlushAll(t, admin)
			return newStore(t, c, patient)
		},
		Advance: func(t *testing.T, d time.Duration) { testhost.AgeKey(t, admin, older, d) },
	}
}

// older makes a token or a lease older by ARGV[1] µs. It shortens the expiry by 1 ms more, because the expiry may
// have been rounded up.
var older = redis.NewScript(`
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return redis.error_reply('NOEXPIRY a key without expiry') end
for _, field in ipairs({'issued', 'expires', 'forgotten', 'used', 'revoked', 'since', 'until'}) do
  if redis.call('HEXISTS', KEYS[1], field) == 1 then redis.call('HINCRBY', KEYS[1], field, '-' .. ARGV[1]) end
end
return redis.call('PEXPIRE', KEYS[1], left - ARGV[1] / 1000 - 1)`)

// TestMiniredisConformsToStore moves the clock of the server. This clock is far from this machine's.
func TestMiniredisConformsToStore(t *testing.T) {
	var server *testhost.Miniredis
	storetest.Run(t, storetest.Host{
		Open: func(t *testing.T) storetest.Store {
			server = testhost.StartMiniredis(t)
			return newStore(t, server.Client(), patient)
		},
		Advance: func(_ *testing.T, d time.Duration) {
			server.Advance(d)
			server.FastForward(d)
		},
	})
}
