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
			l, err := ratelimit.From(c)
			require.NoError(t, err)
			res, err := l.Peek()
			require.NoError(t, err)
			require.True(t, res.Allowed)
			for range 3 {
				res, err = l.Take()
				require.NoError(t, err)
				require.NoError(t, res.Err())
				require.Equal(t, 3*(i+1), res.Count)
			}
			n, err := l.Count()
			require.NoError(t, err)
			require.Equal(t, 3*(i+1), n)
		})
		require.Empty(t, h)
	}
	q.serve(func(c *reqctx.Host) {
		l, err := ratelimit.From(c)
		require.NoError(t, err)
		_, err = l.Take()
		require.NoError(t, err)
		ok, err := l.Refund()
		require.NoError(t, err)
		require.True(t, ok)
		n, err := l.Count()
		require.NoError(t, err)
		require.EqualValues(t, 15, n)
		n, err = p.CountIn(c, 20*time.Second)
		require.NoError(t, err)
		require.EqualValues(t, 15, n)
	})
}

// TestMetersAroundALimit has rules without a limit before and after one that denies.
func TestMetersAroundALimit(t *testing.T) {
	first, last := coarse(0, time.Minute).WithName("first"), coarse(0, time.Minute).WithName("last")
	q := provide(t, ratelimit.NewPolicy("p", ratelimit.ByIP(), first, ratelimit.Throttle(time.Hour), last))
	for _, allowed := range []bool{true, false, false} {
		q.store.calls = 0
		q.serve(func(c *reqctx.Host) {
			l, err := ratelimit.From(c)
			require.NoError(t, err)
			res, err := l.Take()
			require.NoError(t, err)
			require.Equal(t, allowed, res.Allowed)
			require.EqualValues(t, 1, res.Limit)
			for _, each := range res.Each() {
				require.Equal(t, allowed, each.Allowed)
			}
			require.Equal(t, map[bool]int{true: 2, false: 1}[allowed], q.store.calls, "the take, and then both adds")
			n, err := l.Count()
			require.NoError(t, err)
			require.EqualValues(t, 1, n, "what the limit let through")
		})
	}
}

func TestAddChargesEachTime(t *testing.T) {
	q := provide(t, ipPolicy("bytes", 10))
	h := q.serve(func(c *reqctx.Host) {
		p := q.policies[0]
		for i := range int64(3) { // the third is beyond the limit
			res, err := p.Add(c, 4)
			require.NoError(t, err)
			require.True(t, res.Allowed)
			require.Equal(t, 4*(i+1), res.Count)
			require.Equal(t, max(0, 10-4*(i+1)), res.Remaining)
			n, err := p.Count(c)
			require.NoError(t, err)
			require.Equal(t, 4*(i+1), n, "a count is asked anew after an add")
		}
		res, err := p.Add(c, 0)
		require.NoError(t, err)
		require.True(t, res.Allowed)
		require.EqualValues(t, 12, res.Count, "what is there")
		_, err = p.Add(c, -1)
		require.ErrorIs(t, err, ratelimit.ErrOp)
		_, err = p.Add(c, 1<<53+1)
		require.ErrorIs(t, err, ratelimit.ErrOverflow)
		require.NotErrorIs(t, err, ratelimit.ErrStore, "the store works")
		res, err = p.Take(c)
		require.NoError(t, err)
		require.False(t, res.Allowed)
	})
	require.Equal(t, `"bytes";r=0;t=65`, h.Get("RateLimit"))
}

// A rule without a limit counts what its neighbours let through.
func TestMeterBesideALimit(t *testing.T) {
	p := ipPolicy("ip", 2)
	p.Rules = []ratelimit.Rule{ratelimit.Buckets(ratelimit.BucketOptions{}).WithName("all"), p.Rules[0]}
	q := provide(t, p)
	for i := range 4 {
		res, h := q.take("ip")
		require.Equal(t, i < 2, res.Allowed)
		require.EqualValues(t, 2, res.Limit)
		require.EqualValues(t, max(0, 1-i), res.Remaining)
		require.Equal(t, `"ip.60s";q=2;w=60`, h.Get("RateLimit-Policy"), "a rule without limit is not told")
		require.NotContains(t, h.Get("RateLimit"), "all")
	}
	q.serve(func(c *reqctx.Host) {
		l, err := ratelimit.From(c)
		require.NoError(t, err)
		res, err := l.Peek()
		require.NoError(t, err)
		require.False(t, res.Allowed)
		require.Equal(t, []string{"ip.60s"}, res.Err().(*ratelimit.DeniedError).Policies)
		n, err := l.Count()
		require.NoError(t, err)
		require.EqualValues(t, 2, n, "by the first rule, and only what passed")
	})
}

// A peek of several rules is what the take would be, whichever of them denies.
func TestPeekOfSeveralRules(t *testing.T) {
	for _, order := range [][]int64{{1, 5}, {5, 1}} {
		p := ipPolicy("ip", order[0])
		p.Rules = append(p.Rules, ratelimit.PerMinute(order[1]).WithName("other"))
		q := provide(t, p)
		q.take("ip")
		q.serve(func(c *reqctx.Host) {
			l, err := ratelimit.From(c)
			require.NoError(t, err)
			peek, err := l.Peek()
			require.NoError(t, err)
			take, err := l.Take()
			require.NoError(t, err)
			require.False(t, peek.Allowed)
			require.Equal(t, take.Err(), peek.Err())
			require.Len(t, peek.Each(), 2)
			all := func(r ratelimit.Result) []any {
				return []any{r.Violated, r.Source, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter, r.Blocked, r.Count, r.Receipt}
			}
			require.Equal(t, all(take), all(peek))
		})
	}
}
