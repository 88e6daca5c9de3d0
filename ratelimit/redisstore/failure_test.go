package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestFullRedisFails(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
		do(t, s, takeOf(r, "k", 1))
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
		for _, key := range []string{"k", "new"} {
			for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Add} {
				_, err := s.DoOne(t.Context(), opOf(kind, r, key, 1))
				require.ErrorIs(t, err, ratelimit.ErrStore)
				require.ErrorContains(t, err, "OOM")
				require.NotErrorIs(t, err, ErrKeyType)
			}
		}
		require.EqualValues(t, 4, do(t, s, opOf(ratelimit.Peek, r, "k", 1))[0].Remaining)
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
	})
}

// TestRedisErrorKeepsItsCode turns a master into a replica. A client closes its connections to a replica when it sees
// the error's code.
func TestRedisErrorKeepsItsCode(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		require.NoError(t, c.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
		for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Add} {
			_, err := s.DoOne(t.Context(), opOf(kind, r, "k", 1))
			require.ErrorIs(t, err, ratelimit.ErrStore)
			require.True(t, redis.IsReadOnlyError(err), "%v: %v", kind, err)
		}
		require.NoError(t, c.ReplicaOf(t.Context(), "no", "one").Err())
	})
}

// TestScriptErrorsAreStrings checks that Redis survives the scripts' errors. Redis 7.0 crashes when a script raises a
// table.
func TestScriptErrorsAreStrings(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	for _, name := range []string{"foreign", "overflow"} {
		require.ErrorContains(t, c.Eval(t.Context(), preludeLua+"error("+name+", 0)", nil, 0).Err(), name)
	}
	require.NoError(t, c.Ping(t.Context()).Err())
}

// TestDenialByFullRedis checks that a full Redis, which cannot count a block's denials, denies takes all the same.
func TestDenialByFullRedis(t *testing.T) {
	eachRule(t, ratelimit.Block{After: 2, For: time.Hour}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
		take := takeOf(r, "k", 5)
		do(t, s, take)
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
		for range 3 {
			res := do(t, s, take)[0]
			require.False(t, res.Allowed)
			require.True(t, res.Violated)
			require.Zero(t, res.Blocked)
		}
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
		do(t, s, take)
		require.Equal(t, time.Hour, do(t, s, take)[0].Blocked)
	})
}
