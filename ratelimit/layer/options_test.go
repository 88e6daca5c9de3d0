package layer

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestOptionsAreBounded checks that durations and counts above their upper bounds are refused, because sums of them
// could overflow.
func TestOptionsAreBounded(t *testing.T) {
	store, _ := newMemory(t)
	for _, v := range []int64{-1, math.MaxInt64, math.MinInt64, int64(ratelimit.MaxDuration) + 1} {
		d, n := time.Duration(v), int(v)
		for field, o := range map[string]Options{
			"DenyCacheOptions.MaxKeys": {DenyCache: &DenyCacheOptions{MaxKeys: n}},
			"FailoverOptions.MaxKeys":  {Failover: &FailoverOptions{MaxKeys: n}},
			"FailoverOptions.Mode":     {Failover: &FailoverOptions{Mode: Local + 1}},
			"FailoverOptions.Ratio":    {Failover: &FailoverOptions{Ratio: 1.1}},
			"FailoverOptions.Replicas": {Failover: &FailoverOptions{Replicas: n}},
			"FailoverOptions.Retry":    {Failover: &FailoverOptions{Retry: d}},
			"FailoverOptions.Timeout":  {Failover: &FailoverOptions{Timeout: d}},
			"PrepaidOptions.Lifetime":  {Prepaid: &PrepaidOptions{Lifetime: d}},
			"PrepaidOptions.MaxKeys":   {Prepaid: &PrepaidOptions{MaxKeys: n}},
			"PrepaidOptions.Share":     {Prepaid: &PrepaidOptions{Share: min(v, -1)}},
			"PrepaidOptions.Timeout":   {Prepaid: &PrepaidOptions{Timeout: d}},
		} {
			_, err := New(store, o)
			var wrong *option.Error
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, "layer", wrong.Package)
			require.Equal(t, field, wrong.Field)
		}
	}
	_, err := New(store, Options{Prepaid: &PrepaidOptions{Lifetime: time.Microsecond}})
	require.ErrorContains(t, err, "layer: PrepaidOptions.Lifetime is 1µs, want 1ms to 1h0m0s")
}

// TestLongestDenial checks that the cache remembers a denial even if the time until the next unit exceeds a
// time.Duration.
func TestLongestDenial(t *testing.T) {
	store, _ := newMemory(t)
	cache, err := newDenyCache(store, DenyCacheOptions{})
	require.NoError(t, err)
	r := ratelimit.GCRA(1, 24*time.Hour)
	_, err = cache.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", N: 100_000_000, Kind: ratelimit.Add})
	require.NoError(t, err)
	res, err := cache.DoOne(t.Context(), take(r, "k", 1))
	require.NoError(t, err)
	require.False(t, res.Allowed)
	require.InDelta(t, ratelimit.MaxDuration, res.RetryAfter, float64(time.Hour))
	require.Equal(t, ratelimit.FromDenyCache, res.Source)
}
