package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestDerivedBucketsAreSmall checks that a counter with buckets derived from its Per takes at most
// 300 bytes if the subject has at most 34.
func TestDerivedBucketsAreSmall(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	clock := time.Unix(1_000_000_000, 0)
	s := newStore(t, c, patient)
	s.clock = func() time.Time { return clock }
	for _, r := range []ratelimit.Rule{
		ratelimit.PerSecond(3), ratelimit.PerMinute(5), ratelimit.PerHour(100), ratelimit.PerDay(1000),
		ratelimit.Per(1000, 30*24*time.Hour), ratelimit.Per(7, 10*time.Second), ratelimit.Per(7, 10*time.Millisecond),
	} {
		const key = "u:0b5a4c1e8d5f4f0e9a556c4b9a1f2d3e" // 34 bytes
		for range 30 {                                   // longer than the span, so that every bucket is in use
			do(t, s, ratelimit.Op{Rule: r, Key: key, N: 1, Kind: ratelimit.Take})
			clock = clock.Add(r.Interval())
		}
		used := c.MemoryUsage(t.Context(), keyOf(s, key, r), 0).Val()
		require.Positive(t, used)
		require.LessOrEqual(t, used, int64(300), "%v", r)
		t.Log(r, used)
	}
}
