package redisstore

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// recovers fails unless takes of l work within a second.
func recovers(t *testing.T, l *ratelimit.Limiter) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := l.Take(t.Context(), "k", 1)
		return err == nil
	}, time.Second, 10*time.Millisecond)
}

// TestRedisDeathUnderLoad checks that every call gets a result or ErrStore, and
// that scripts are loaded again after a restart.
func TestRedisDeathUnderLoad(t *testing.T) {
	server := testhost.StartRedis(t)
	l := newLimiter(t, newStore(t, server.Client(nil), Options{}), perMinute(1<<40))
	recovers(t, l)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				if _, err := l.Take(t.Context(), "k", 1); err != nil {
					if !errors.Is(err, ratelimit.ErrStore) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	server.Stop()
	wg.Wait()
	server.Restart()
	recovers(t, l)
}

func TestScriptFlushUnderLoad(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	var limiters []*ratelimit.Limiter
	for _, r := range lasting(ratelimit.Block{}) {
		l, err := ratelimit.NewLimiter(s, r.WithLimit(1000))
		require.NoError(t, err)
		limiters = append(limiters, l)
	}
	endFlushes := testhost.KeepFlushingScripts(t, c)
	var takes sync.WaitGroup
	for range 16 {
		takes.Go(func() {
			for range 50 {
				for _, l := range limiters {
					if res, err := l.Take(t.Context(), "k", 1); err != nil || !res.Allowed {
						t.Errorf("%+v, %v", res, err)
					}
				}
			}
		})
	}
	takes.Wait()
	endFlushes()
	for _, l := range limiters {
		res, err := l.Peek(t.Context(), "k", 1)
		require.NoError(t, err)
		// Of a GCRA's, some may be back.
		require.LessOrEqual(t, res.Remaining, int64(200+50), "each take ran")
		require.GreaterOrEqual(t, res.Remaining, int64(200), "each take ran once")
	}
}

func TestFullRedisFails(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
		do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
		for _, key := range []string{"k", "new"} {
			for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Add} {
				_, err := s.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: key, N: 1, Kind: kind})
				require.ErrorIs(t, err, ratelimit.ErrStore)
				require.ErrorContains(t, err, "OOM")
				require.NotErrorIs(t, err, ErrKeyType)
			}
		}
		require.EqualValues(t, 4, do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Peek})[0].Remaining)
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
	})
}

// TestRedisErrorKeepsItsCode turns a master into a replica: by the error's code, the client closes
// its connections to a replica.
func TestRedisErrorKeepsItsCode(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		require.NoError(t, c.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
		for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Add} {
			_, err := s.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: kind})
			require.ErrorIs(t, err, ratelimit.ErrStore)
			require.True(t, redis.IsReadOnlyError(err), "%v: %v", kind, err)
		}
		require.NoError(t, c.ReplicaOf(t.Context(), "no", "one").Err())
	})
}

// TestScriptErrorsAreStrings raises the scripts' errors uncaught: Redis 7.0 crashes when an error is
// a table.
func TestScriptErrorsAreStrings(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	for _, name := range []string{"foreign", "overflow"} {
		require.ErrorContains(t, c.Eval(t.Context(), preludeLua+"error("+name+", 0)", nil, 0).Err(), name)
	}
	require.NoError(t, c.Ping(t.Context()).Err())
}

// TestDenialByFullRedis has no memory left for the denial count of a block.
func TestDenialByFullRedis(t *testing.T) {
	eachRule(t, ratelimit.Block{After: 2, For: time.Hour}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
		take := ratelimit.Op{Rule: r, Key: "k", N: 5, Kind: ratelimit.Take}
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
