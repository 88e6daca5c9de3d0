package ratelimit_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestRulesForAPlan(t *testing.T) {
	p := ipPolicy("api", 2)
	pro := p.Rules[0].WithLimit(4)
	burst := coarse(3, 10*time.Second).WithName("burst")
	plan, calls := "", 0
	p.RulesFor = func(context.Context, *http.Request) ([]ratelimit.Rule, error) {
		calls++
		return map[string][]ratelimit.Rule{"pro": {pro, burst}}[plan], nil // nil means p.Rules
	}
	q := provide(t, p)

	_, h := q.take("api")
	require.Equal(t, `"api";q=2;w=60`, h.Get("RateLimit-Policy"))
	require.Equal(t, `"api";r=1;t=65`, h.Get("RateLimit"))
	q.take("api")
	res, _ := q.take("api")
	require.False(t, res.Allowed)

	plan = "pro" // its rule has the same counter and a higher limit
	calls = 0
	h = q.serve(func(c *reqctx.Host) {
		l := must(ratelimit.From(c))
		for range 3 {
			res = must(l.Take())
		}
		require.True(t, res.Allowed)
		require.EqualValues(t, 1, res.Remaining)
		require.EqualValues(t, 3, must(p.Count(c)))
	})
	require.Equal(t, 1, calls, "once for a request")
	require.Equal(t, `"api.60s";q=4;w=60, "api.burst";q=3;w=10`, h.Get("RateLimit-Policy"))
	require.Equal(t, `"api.60s";r=1;t=65, "api.burst";r=2;t=15`, h.Get("RateLimit"))

	plan = "" // back to the lower limit
	res, _ = q.take("api")
	require.False(t, res.Allowed)
	require.EqualValues(t, 2, res.Limit)
}

func TestRulesForIsChecked(t *testing.T) {
	plain := coarse(1, time.Minute)
	broken := errors.New("no database")
	none := plain.WithoutLimit()
	var rules []ratelimit.Rule
	var failure error
	p := &ratelimit.Policy{Name: "api", Key: ratelimit.ByIP(), RulesFor: func(context.Context, *http.Request) ([]ratelimit.Rule, error) { return rules, failure }}
	q := provide(t, p)
	ask := func(use func(ctx context.Context) error) (err error) {
		h := q.serve(func(c *reqctx.Host) { err = use(c) })
		require.Empty(t, h)
		return err
	}
	for want, r := range map[string][]ratelimit.Rule{
		"RulesFor returned no rules":         {},
		"RulesFor[1]: Rule is the zero Rule": {plain, {}},
		"RulesFor[1] has the same name":      {plain, plain},
		"RulesFor[0] has no limit: ":         {none},
	} {
		rules = r
		for _, use := range []func(ctx context.Context) error{
			func(ctx context.Context) error { _, err := p.Take(ctx); return err },
			func(ctx context.Context) error { _, err := p.Peek(ctx); return err },
			func(ctx context.Context) error { _, err := p.Count(ctx); return err },
			func(ctx context.Context) error { _, err := p.Add(ctx, 1); return err },
		} {
			err := ask(use)
			require.ErrorContains(t, err, `policy "api": `+want)
		}
	}
	failure = broken
	require.ErrorIs(t, ask(p.Require), broken)
	require.Zero(t, q.store.calls)

	failure, rules = nil, []ratelimit.Rule{plain}
	res, _ := q.take("api")
	require.True(t, res.Allowed)
}

// TestPolicyThatBlocks checks that the header fields of a blocked request contain the duration of the block.
func TestPolicyThatBlocks(t *testing.T) {
	q := provide(t, &ratelimit.Policy{Name: "login", Key: ratelimit.ByIP(), Rules: []ratelimit.Rule{
		ratelimit.FixedWindow(1, time.Minute).WithBlock(ratelimit.Block{After: 2, For: time.Hour}),
	}})
	q.take("login")
	q.take("login")
	_, h := q.take("login")
	require.Equal(t, "3600", h.Get("Retry-After"))
	require.Equal(t, `"login";r=0;t=3600`, h.Get("RateLimit"))
}
