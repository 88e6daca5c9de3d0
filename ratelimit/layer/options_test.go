package layer

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// Durations and counts have one upper bound each, beyond which sums could overflow.
func TestOptionsAreBounded(t *testing.T) {
	store, _ := newMemory(t)
	for field, wrong := range map[string]func(time.Duration, int) error{
		"DenyCacheOptions.Block": func(d time.Duration, _ int) error {
			_, err := newDenyCache(store, DenyCacheOptions{Block: d})
			return err
		},
		"LeaseOptions.Timeout":    func(d time.Duration, _ int) error { return lease(store, LeaseOptions{Timeout: d}) },
		"ListsOptions.RetryAfter": func(d time.Duration, _ int) error { _, err := newLists(store, ListsOptions{RetryAfter: d}); return err },
		"FailoverOptions.Timeout": func(d time.Duration, _ int) error {
			_, err := newFailover(store, FailoverOptions{Timeout: d})
			return err
		},
		"FailoverOptions.Retry": func(d time.Duration, _ int) error {
			_, err := newFailover(store, FailoverOptions{Retry: d})
			return err
		},
		"LeaseOptions.Lifetime": func(d time.Duration, _ int) error { return lease(store, LeaseOptions{Lifetime: d}) },
		"DenyCacheOptions.Keys": func(_ time.Duration, n int) error {
			_, err := newDenyCache(store, DenyCacheOptions{Keys: n})
			return err
		},
		"LeaseOptions.MaxKeys": func(_ time.Duration, n int) error { return lease(store, LeaseOptions{MaxKeys: n}) },
		"FailoverOptions.Keys": func(_ time.Duration, n int) error { _, err := newFailover(store, FailoverOptions{Keys: n}); return err },
		"FailoverOptions.Calls": func(_ time.Duration, n int) error {
			_, err := newFailover(store, FailoverOptions{Calls: n})
			return err
		},
		"FailoverOptions.Replicas": func(_ time.Duration, n int) error {
			_, err := newFailover(store, FailoverOptions{Replicas: n})
			return err
		},
		"FailoverOptions.MaxAbando": func(_ time.Duration, n int) error {
			_, err := newFailover(store, FailoverOptions{MaxAbandoned: n})
			return err
		},
	} {
		for _, v := range []int64{-1, math.MaxInt64, math.MinInt64, int64(ratelimit.MaxDuration) + 1} {
			require.ErrorContains(t, wrong(time.Duration(v), int(v)), "layer: "+field)
		}
	}
}

func lease(store ratelimit.Store, o LeaseOptions) error {
	l, err := newLease(store, o)
	if err == nil {
		err = l.Close()
	}
	return err
}

// The longest durations work as shorter ones do.
func TestLongestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Options{MaxKeys: math.MaxInt, MaxBytes: math.MaxInt64})
		require.NoError(t, err)
		s := &storespy.Spy{Store: store}
		lease, err := newLease(s, LeaseOptions{Timeout: ratelimit.MaxDuration, Max: math.MaxInt64, Share: math.MaxInt64})
		require.NoError(t, err)
		cache, err := newDenyCache(lease, DenyCacheOptions{Block: ratelimit.MaxDuration})
		require.NoError(t, err)
		for i := range 3 {
			res, err := cache.DoOne(t.Context(), take(windowOf(1), "k", 1))
			require.NoError(t, err)
			require.Equal(t, i == 0, res.Allowed)
			require.Equal(t, i == 2, res.Source == ratelimit.FromDenyCache)
			if i > 0 {
				<-time.After(24 * time.Hour)
			}
		}
		began := time.Now()
		require.NoError(t, lease.Close())
		require.Zero(t, time.Since(began))
	})
}

// A denial for longer than a time.Duration is remembered, too.
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
