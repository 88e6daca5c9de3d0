package layer_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// gone is a store that fails every call.
type gone struct{}

func (gone) Do(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
	return nil, errors.New("gone")
}

func (s gone) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(s.Do).DoOne(ctx, op)
}

// newStack returns a deny cache and failover around a Redis store.
func newStack(tb testing.TB, client redis.UniversalClient, o layer.FailoverOptions) *layer.Store {
	tb.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	store, err := redisstore.New(client, redisstore.Options{})
	require.NoError(tb, err)
	s, err := layer.New(store, layer.Options{DenyCache: &layer.DenyCacheOptions{}, Failover: &o})
	require.NoError(tb, err)
	return s
}

func limiter(tb testing.TB, store ratelimit.Store, r ratelimit.Rule) *ratelimit.Limiter {
	tb.Helper()
	l, err := ratelimit.NewLimiter(store, r)
	require.NoError(tb, err)
	return l
}

func windowOf(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.FixedWindow(limit, per)
}

// TestTwoProcessesReachTheLimit checks that two deny caches, as in two processes, reach the limit exactly and save
// the calls for denied takes.
func TestTwoProcessesReachTheLimit(t *testing.T) {
	server := testhost.StartRedis(t)
	patient := layer.FailoverOptions{Timeout: 10 * time.Second}
	here := limiter(t, newStack(t, server.Client(nil), patient), windowOf(5, time.Second))
	there := limiter(t, newStack(t, server.Client(nil), patient), windowOf(5, time.Second))
	calls := func() int { n, _ := server.Calls("evalsha"); m, _ := server.Calls("eval"); return n + m }
	take := func(l *ratelimit.Limiter) ratelimit.Result {
		res, err := l.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		return res
	}
	take(limiter(t, newStack(t, server.Client(nil), patient), windowOf(1, time.Hour))) // loads the script
	// The loop ends when all takes of a round were made within a single window.
	for {
		began, before := time.Now(), calls()
		var res ratelimit.Result
		for i := range 7 {
			res = take(here)
			require.Equal(t, i < 5, res.Allowed, "%d", i)
		}
		require.Equal(t, ratelimit.FromDenyCache, res.Source)
		require.Positive(t, res.RetryAfter)
		require.LessOrEqual(t, res.RetryAfter, time.Second)
		seen := calls()
		first := take(there)
		for range 3 {
			require.False(t, take(there).Allowed)
		}
		now := calls()
		if time.Since(began) < 900*time.Millisecond {
			require.Equal(t, before+5, seen, "the store saw those that passed")
			require.Equal(t, ratelimit.FromStore, first.Source)
			require.Equal(t, seen+1, now, "the other process makes one call")
			break
		}
		<-time.After(time.Second)
	}
	for _, l := range []*ratelimit.Limiter{here, there} {
		res := take(l)
		for !res.Allowed {
			<-time.After(res.RetryAfter)
			res = take(l)
		}
		require.Equal(t, ratelimit.FromStore, res.Source)
	}
}

// TestRedisDownAndBack makes Redis fail in several ways. It checks that each mode answers in time, and that Redis is
// called again within a second of its return.
func TestRedisDownAndBack(t *testing.T) {
	for _, mode := range []layer.Mode{layer.Closed, layer.Open, layer.Local} {
		for name, fault := range map[string]func(*faultproxy.Proxy, *testhost.Redis) (back func()){
			"refuses": func(_ *faultproxy.Proxy, s *testhost.Redis) func() { s.Kill(); return s.Restart },
			"hangs":   func(_ *faultproxy.Proxy, s *testhost.Redis) func() { return s.Pause() },
			"silent": func(p *faultproxy.Proxy, _ *testhost.Redis) func() {
				p.Stall()
				return func() { require.NoError(t, p.Restore()) }
			},
			"cut": func(p *faultproxy.Proxy, _ *testhost.Redis) func() {
				p.Cut()
				return func() { require.NoError(t, p.Restore()) }
			},
		} {
			t.Run(mode.String()+", "+name, func(t *testing.T) {
				t.Parallel()
				server := testhost.StartRedis(t)
				proxy := faultproxy.New(t, server.Addr)
				s := newStack(t, server.Client(func(o *redis.Options) { o.Addr = proxy.Addr }), layer.FailoverOptions{Mode: mode})
				goneAndBack(t, s, mode, func() func() { return fault(proxy, server) })
			})
		}
	}
}

func goneAndBack(t *testing.T, s *layer.Store, mode layer.Mode, fault func() (back func())) {
	l := limiter(t, s, windowOf(1<<40, time.Hour))
	works := func() bool {
		res, err := l.Take(t.Context(), "k", 1)
		return err == nil && res.Source == ratelimit.FromStore
	}
	require.Eventually(t, works, 20*time.Second, time.Millisecond)
	watch := testenv.WatchStalls(t, nil)
	for range 2 {
		back := fault()
		late, n := 0, 0
		for began := time.Now(); time.Since(began) < 700*time.Millisecond || !s.Stats().Down; n++ {
			require.Less(t, n, 1000)
			sent := time.Now()
			res, err := l.Take(t.Context(), "k", 1)
			if watch.Since(sent) > 75*time.Millisecond {
				late++
			}
			if mode == layer.Closed {
				require.ErrorAs(t, err, new(*layer.UnavailableError))
			} else {
				require.NoError(t, err)
				require.True(t, res.Allowed)
				require.Equal(t, ratelimit.FromFailover, res.Source)
			}
			<-time.After(time.Millisecond)
		}
		require.LessOrEqual(t, late, n/2, "of %d", n)
		back()
		isBack := time.Now()
		require.Eventually(t, works, 20*time.Second, 5*time.Millisecond)
		require.Less(t, watch.Since(isBack), time.Second, "back within a second")
		require.False(t, s.Stats().Down)
	}
	require.Eventually(t, func() bool { return s.Stats().Abandoned == 0 }, 20*time.Second, time.Millisecond)
}
