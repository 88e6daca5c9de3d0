package layer

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redismini"
	"github.com/lazyreq/lazyreq/internal/redistest"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

// patient is for tests in which Redis may be slow but not silent.
var patient = redisstore.Options{Timeout: 10 * time.Second}

func TestCoalesceOnRedisConforms(t *testing.T) {
	t.Parallel()
	some := func(r ratelimit.Rule) bool { // it is slow: not all of a thousand rates
		return r.Per() != time.Minute || r.Limit()%1000 == 60
	}
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		server := redismini.Start(t)
		server.Advance(678_901 * time.Microsecond)
		store, err := redisstore.New(server.Client(), patient)
		require.NoError(t, err)
		c, err := NewCoalesce(store, CoalesceOptions{})
		require.NoError(t, err)
		return c, server
	}, some)
}

// TestCoalesceOnRedisIsExact has many callers take what is there, by every kind of rule:
// as much as is allowed passes, no matter how the takes are put together.
func TestCoalesceOnRedisIsExact(t *testing.T) {
	const limit, callers = 1000, 32
	server := redistest.Start(t)
	store, err := redisstore.New(server.Client(nil), patient)
	require.NoError(t, err)
	c, err := NewCoalesce(store, CoalesceOptions{})
	require.NoError(t, err)
	for _, r := range []ratelimit.Rule{
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: 10 * time.Minute})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: limit, Per: time.Hour})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: limit, Per: time.Hour, Encoding: ratelimit.Stream})),
		ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: limit, Per: time.Hour})),
		ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: limit, Per: 1000 * time.Hour})),
	} {
		for _, mixed := range []bool{false, true} {
			key := "same"
			if mixed {
				key = "mixed"
			}
			t.Run(r.Algorithm()+" "+key, func(t *testing.T) {
				before, _ := server.Calls("evalsha")
				var units, takes atomic.Int64
				var wg sync.WaitGroup
				for i := range callers {
					wg.Go(func() {
						n := int64(1)
						for range 2 * limit / callers {
							if mixed {
								n = n%3 + 1 + int64(i%2)
							}
							takes.Add(1)
							res, err := c.DoOne(t.Context(), take(r, key, n))
							if err != nil {
								t.Error(err)
							}
							if res.Allowed {
								units.Add(n)
							}
						}
					})
				}
				wg.Wait()
				after, _ := server.Calls("evalsha")
				require.EqualValues(t, limit, units.Load())
				require.Less(t, int64(after-before), takes.Load()/4, "many shared a call")
				one, err := c.DoOne(t.Context(), take(r, key, 1))
				require.NoError(t, err)
				require.False(t, one.Allowed)
			})
		}
	}
}
