package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

func TestNewLimiterRefuses(t *testing.T) {
	_, err := ratelimit.NewLimiter(nil, ratelimit.Buckets(ratelimit.BucketOptions{}))
	require.ErrorContains(t, err, "store is nil")
	_, err = ratelimit.NewLimiter((*memstore.Store)(nil), ratelimit.PerSecond(1))
	require.ErrorContains(t, err, "store is nil")
	_, err = ratelimit.NewLimiter(newStore(t, memstore.Options{}), ratelimit.Rule{})
	require.ErrorContains(t, err, "zero Rule")
}

// doOnly hides a store's DoOne.
type doOnly struct{ ratelimit.Store }

func TestLimiter(t *testing.T) {
	for name, wrap := range map[string]func(ratelimit.Store) ratelimit.Store{
		"DoOne":   func(s ratelimit.Store) ratelimit.Store { return s },
		"Do only": func(s ratelimit.Store) ratelimit.Store { return doOnly{s} },
	} {
		t.Run(name, func(t *testing.T) {
			h, ctx := newHand(), t.Context()
			store := wrap(newStore(t, memstore.Options{Clock: h.clock}))
			l := newLimiter(t, store, coarse(10, time.Minute))

			first, err := l.Take(ctx, "k", 3)
			require.NoError(t, err)
			require.True(t, first.Allowed)
			require.NoError(t, first.Err())
			n, err := l.AddCount(ctx, "k", 2, 20*time.Second)
			require.NoError(t, err)
			require.EqualValues(t, 5, n)
			res, err := l.Peek(ctx, "k", 6)
			require.NoError(t, err)
			require.False(t, res.Allowed)
			res, err = l.Take(ctx, "k", 6)
			require.NoError(t, err)
			require.EqualError(t, res.Err(), "ratelimit: denied: limit 10, retry after 1m5s")

			ok, err := l.Refund(ctx, "k", res)
			require.NoError(t, err)
			require.False(t, ok, "a denial has nothing to refund")
			ok, err = l.Refund(ctx, "k", first)
			require.NoError(t, err)
			require.True(t, ok)
			n, err = l.Count(ctx, "k", 0)
			require.NoError(t, err)
			require.EqualValues(t, 2, n)
			require.NoError(t, l.Reset(ctx, "k"))
			n, err = l.Count(ctx, "k", 600*time.Second)
			require.NoError(t, err)
			require.Zero(t, n)

			_, err = l.Count(ctx, "k", 601*time.Second)
			require.ErrorIs(t, err, ratelimit.ErrInterval)
			require.ErrorContains(t, err, "it is 10m1s, want at most 10m0s")
			_, err = l.Take(ctx, "k", 11)
			require.ErrorIs(t, err, ratelimit.ErrTooLarge)
			require.ErrorContains(t, err, "n is 11, limit is 10")
			ended, cancel := context.WithCancel(ctx)
			cancel()
			_, err = l.Take(ended, "k", 1)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}
