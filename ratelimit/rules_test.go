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

// A policy works alike with each kind of rule.
func TestPolicyOfEachRule(t *testing.T) {
	for _, tt := range []struct {
		rule     ratelimit.Rule
		fields   string // after the third take of three
		retry    string // of the fourth
		noCount  bool
		noRefund bool
	}{
		{rule: coarse(3, time.Minute), fields: `"p";r=0;t=65`, retry: "65"},
		{rule: ratelimit.SlidingLog(3, time.Minute), fields: `"p";r=0;t=60`, retry: "60"},
		{rule: ratelimit.FixedWindow(3, time.Minute), fields: `"p";r=0;t=60`, retry: "60"},
		{rule: ratelimit.GCRA(3, time.Minute), fields: `"p";r=0;t=20`, retry: "20", noCount: true},
	} {
		t.Run(tt.rule.Algorithm(), func(t *testing.T) {
			q := provide(t, &ratelimit.Policy{Name: "p", Rules: []ratelimit.Rule{tt.rule}, Key: ratelimit.ByIP()})
			var h http.Header
			for range 3 {
				var res ratelimit.Result
				res, h = q.take("p")
				require.True(t, res.Allowed)
			}
			require.Equal(t, `"p";q=3;w=60`, h.Get("RateLimit-Policy"))
			require.Equal(t, tt.fields, h.Get("RateLimit"))
			res, h := q.take("p")
			require.False(t, res.Allowed)
			require.Equal(t, tt.retry, h.Get("Retry-After"))

			q.hand.now = q.hand.now.Add(2 * time.Minute)
			h = q.serve(func(c *reqctx.Host) {
				p := q.policies[0]
				must(p.Take(c))
				n, err := p.Count(c, 0)
				if tt.noCount {
					require.ErrorIs(t, err, ratelimit.ErrNoCount)
				} else {
					require.NoError(t, err)
					require.EqualValues(t, 1, n)
				}
				require.True(t, must(p.Refund(c)))
				require.EqualValues(t, 3, must(p.Peek(c)).Remaining)
				must(p.Add(c, 4))
				require.False(t, must(p.Peek(c)).Allowed)
			})
			require.Equal(t, `"p";r=3;t=0`, h.Get("RateLimit"), "after the refund")
		})
	}
}

// Rules of different kinds are charged together or not at all.
func TestPolicyOfDifferentRules(t *testing.T) {
	q := provide(t, &ratelimit.Policy{Name: "p", Key: ratelimit.ByIP(), Rules: []ratelimit.Rule{
		ratelimit.GCRA(60, time.Minute).WithBurst(2).WithName("rate"),
		ratelimit.FixedWindow(3, time.Hour).WithName("hour"),
	}})
	_, h := q.take("p")
	require.Equal(t, `"p.rate";q=60;w=60, "p.hour";q=3;w=3600`, h.Get("RateLimit-Policy"))
	require.Equal(t, `"p.rate";r=1;t=1, "p.hour";r=2;t=3600`, h.Get("RateLimit"))
	q.take("p")
	res, h := q.take("p")
	require.False(t, res.Allowed)
	require.Equal(t, []string{"p.rate"}, res.Err().(*ratelimit.DeniedError).Policies)
	require.Equal(t, "1", h.Get("Retry-After"))
	require.Equal(t, `"p.rate";r=0;t=1, "p.hour";r=1;t=3600`, h.Get("RateLimit"), "the denied one is not charged to the hour")
	q.hand.now = q.hand.now.Add(time.Second)
	res, _ = q.take("p")
	require.True(t, res.Allowed)
	require.Zero(t, res.Remaining)
	q.hand.now = q.hand.now.Add(10 * time.Second)
	res, h = q.take("p")
	require.Equal(t, []string{"p.hour"}, res.Err().(*ratelimit.DeniedError).Policies)
	require.Equal(t, "3589", h.Get("Retry-After"))
}

// A blocked caller is told how long the block lasts.
func TestPolicyThatBlocks(t *testing.T) {
	q := provide(t, &ratelimit.Policy{Name: "login", Key: ratelimit.ByIP(), Rules: []ratelimit.Rule{
		ratelimit.FixedWindow(1, time.Minute).WithBlock(ratelimit.Block{After: 2, For: time.Hour})}})
	var h http.Header
	for range 3 {
		_, h = q.take("login")
	}
	require.Equal(t, "3600", h.Get("Retry-After"))
	require.Equal(t, `"login";r=0;t=3600`, h.Get("RateLimit"))
	q.hand.now = q.hand.now.Add(time.Hour)
	res, _ := q.take("login")
	require.True(t, res.Allowed)
}

func TestRulesForAPlan(t *testing.T) {
	p := ipPolicy("api", 2)
	pro := p.Rules[0].WithLimit(4)
	burst := coarse(3, 10*time.Second).WithName("burst")
	plan, calls := "", 0
	p.RulesFor = func(context.Context, *http.Request) ([]ratelimit.Rule, error) {
		calls++
		return map[string][]ratelimit.Rule{"pro": {pro, burst}}[plan], nil // nil: what all others have
	}
	q := provide(t, p)

	_, h := q.take("api")
	require.Equal(t, `"api";q=2;w=60`, h.Get("RateLimit-Policy"))
	require.Equal(t, `"api";r=1;t=65`, h.Get("RateLimit"))
	q.take("api")
	res, _ := q.take("api")
	require.False(t, res.Allowed)

	plan = "pro" // the same counter, another limit
	calls = 0
	h = q.serve(func(c *reqctx.Host) {
		l := must(ratelimit.From(c))
		for range 3 {
			res = must(l.Take())
		}
		require.True(t, res.Allowed)
		require.EqualValues(t, 1, res.Remaining)
		require.EqualValues(t, 3, must(p.Count(c, 0)))
	})
	require.Equal(t, 1, calls, "once for a request")
	require.Equal(t, `"api.60s";q=4;w=60, "api.burst";q=3;w=10`, h.Get("RateLimit-Policy"))
	require.Equal(t, `"api.60s";r=1;t=65, "api.burst";r=2;t=15`, h.Get("RateLimit"))

	plan = "" // back to the smaller one
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
			func(ctx context.Context) error { _, err := p.Count(ctx, 0); return err },
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
