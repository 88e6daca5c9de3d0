package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/internal/torture"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// short holds rules whose Per passes several times in a test.
var short = map[string]ratelimit.Rule{
	"buckets": ratelimit.Buckets(ratelimit.BucketOptions{Limit: 100, Per: 250 * time.Millisecond, Interval: 100 * time.Millisecond, Span: time.Second}),
	"log":     ratelimit.SlidingLog(100, 250*time.Millisecond),
	"stream":  ratelimit.SlidingLog(100, 250*time.Millisecond).WithStream(),
	"window":  ratelimit.FixedWindow(100, 250*time.Millisecond),
	"gcra":    ratelimit.GCRA(100, 250*time.Millisecond).WithBurst(50),
}

// checked converts a rule for torture.Check.
func checked(t *testing.T, r ratelimit.Rule) torture.Rule {
	switch r.Algorithm() {
	case "buckets":
		return torture.Buckets(r.Limit(), r.Per(), r.Interval())
	case "log":
		return torture.SlidingLog(r.Limit(), r.Per())
	case "window":
		return torture.FixedWindow(r.Limit(), r.Per())
	case "gcra":
		return torture.GCRA(r.Limit(), r.Per(), r.Burst())
	}
	t.Fatalf("no check of %v", r)
	return torture.Rule{}
}

func TestTwoProcessesKeepTheLimit(t *testing.T) {
	for name, r := range short {
		t.Run(name, func(t *testing.T) {
			takes := torture.Run(t, torture.Plan{
				Processes: 2, Goroutines: 32, Units: 3, For: 700 * time.Millisecond,
				Server: func() string { return testhost.StartRedis(t).Addr },
				Taker: func(addr string) func(context.Context, int64) (bool, error) {
					c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
					t.Cleanup(func() { _ = c.Close() })
					store := newStore(t, c, patient)
					return func(ctx context.Context, n int64) (bool, error) {
						res, err := store.DoOne(ctx, takeOf(r, "k", n))
						return res.Allowed, err
					}
				},
			})
			allowed := 0
			for _, k := range takes {
				require.False(t, k.Failed, "%v", k)
				if k.Allowed {
					allowed++
				}
			}
			require.Greater(t, allowed, 33, "the whole limit passed, in takes of up to 3")
			require.NoError(t, torture.Check(checked(t, r), takes))
		})
	}
}
