package ratelimit_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestMeterNeverDeniesAndSendsNoFields(t *testing.T) {
	p := ratelimit.NewPolicy("hits", ratelimit.ByIP(), ratelimit.Buckets(ratelimit.BucketOptions{}))
	p.Cost = func(context.Context, *http.Request) (int64, error) { return 3, nil }
	p.Headers = ratelimit.HeadersDraft10AndX
	q := provide(t, p)
	for i := range int64(2) {
		h := q.serve(func(c *reqctx.Host) {
			require.True(t, must(p.Peek(c)).Allowed)
			for range 3 {
				res := must(p.Take(c))
				require.NoError(t, res.Err())
				require.Equal(t, 3*(i+1), res.Count)
			}
			require.Equal(t, 3*(i+1), must(p.Count(c)))
		})
		require.Empty(t, h)
	}
	q.serve(func(c *reqctx.Host) {
		must(p.Take(c))
		require.True(t, must(p.Refund(c)))
		require.EqualValues(t, 6, must(p.CountIn(c, 20*time.Second)))
	})
}

func TestAddChargesEachTime(t *testing.T) {
	q := provide(t, ipPolicy("bytes", 10))
	h := q.serve(func(c *reqctx.Host) {
		p := q.policies[0]
		for i := range int64(3) { // the third Add exceeds the limit of 10
			res := must(p.Add(c, 4))
			require.True(t, res.Allowed)
			require.Equal(t, 4*(i+1), res.Count)
			require.Equal(t, max(0, 10-4*(i+1)), res.Remaining)
			require.Equal(t, 4*(i+1), must(p.Count(c)))
		}
		res := must(p.Add(c, 0))
		require.True(t, res.Allowed)
		require.EqualValues(t, 12, res.Count, "what is there")
		_, err := p.Add(c, -1)
		require.ErrorIs(t, err, ratelimit.ErrOp)
		_, err = p.Add(c, 1<<53+1)
		require.ErrorIs(t, err, ratelimit.ErrOverflow)
		require.NotErrorIs(t, err, ratelimit.ErrStore, "the store works")
		require.False(t, must(p.Take(c)).Allowed)
	})
	require.Equal(t, `"bytes";r=0;t=65`, h.Get("RateLimit"))
}
