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

func meter(name string) *ratelimit.Policy {
	return &ratelimit.Policy{Name: name, Rules: []ratelimit.Rule{ratelimit.Buckets(ratelimit.BucketOptions{})}, Key: ratelimit.ByIP(), XHeaders: true}
}

func TestMeterNeverDeniesAndSendsNoFields(t *testing.T) {
	p := meter("hits")
	p.Cost = func(context.Context, *http.Request) (int64, error) { return 3, nil }
	q := provide(t, p)
	for i := range int64(5) {
		h := q.serve(func(c *reqctx.Host) {
			l := must(ratelimit.From(c))
			res := must(l.Peek())
			require.True(t, res.Allowed)
			for range 3 {
				res = must(l.Take())
				require.NoError(t, res.Err())
				require.Equal(t, 3*(i+1), res.Count)
			}
			require.Equal(t, 3*(i+1), must(l.Count()))
		})
		require.Empty(t, h)
	}
	q.serve(func(c *reqctx.Host) {
		l := must(ratelimit.From(c))
		must(l.Take())
		require.True(t, must(l.Refund()))
		require.EqualValues(t, 15, must(l.Count()))
		require.EqualValues(t, 15, must(p.CountIn(c, 20*time.Second)))
	})
}

// TestMetersAroundALimit has rules without a limit before and after one that denies.
func TestMetersAroundALimit(t *testing.T) {
	first, last := coarse(0, time.Minute).WithName("first"), coarse(0, time.Minute).WithName("last")
	q := provide(t, ratelimit.NewPolicy("p", ratelimit.ByIP(), first, ratelimit.Throttle(time.Hour), last))
	for _, allowed := range []bool{true, false, false} {
		q.store.calls = 0
		h := q.serve(func(c *reqctx.Host) {
			l := must(ratelimit.From(c))
			res := must(l.Take())
			require.Equal(t, allowed, res.Allowed)
			require.EqualValues(t, 1, res.Limit)
			for _, each := range res.Each() {
				require.Equal(t, allowed, each.Allowed)
			}
			require.Equal(t, map[bool]int{true: 2, false: 1}[allowed], q.store.calls, "the take, and then both adds")
			require.EqualValues(t, 1, must(l.Count()), "what the limit let through")
		})
		require.Equal(t, `"p.1h";q=1;w=3600`, h.Get("RateLimit-Policy"), "a rule without a limit is not sent")
		require.NotContains(t, h.Get("RateLimit"), "first")
	}
}

func TestAddChargesEachTime(t *testing.T) {
	q := provide(t, ipPolicy("bytes", 10))
	h := q.serve(func(c *reqctx.Host) {
		p := q.policies[0]
		for i := range int64(3) { // the third is beyond the limit
			res := must(p.Add(c, 4))
			require.True(t, res.Allowed)
			require.Equal(t, 4*(i+1), res.Count)
			require.Equal(t, max(0, 10-4*(i+1)), res.Remaining)
			require.Equal(t, 4*(i+1), must(p.Count(c)), "a count is asked anew after an add")
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
