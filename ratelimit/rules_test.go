package ratelimit_test

import (
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
				l, err := ratelimit.From(c)
				require.NoError(t, err)
				_, err = l.Take()
				require.NoError(t, err)
				n, err := l.Count()
				if tt.noCount {
					require.ErrorIs(t, err, ratelimit.ErrNoCount)
				} else {
					require.NoError(t, err)
					require.EqualValues(t, 1, n)
				}
				ok, err := l.Refund()
				require.NoError(t, err)
				require.True(t, ok)
				res, err := l.Peek()
				require.NoError(t, err)
				require.EqualValues(t, 3, res.Remaining)
				_, err = q.policies[0].Add(c, 4)
				require.NoError(t, err)
				res, err = l.Peek()
				require.NoError(t, err)
				require.False(t, res.Allowed)
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
		ratelimit.SlidingLog(1, time.Hour).WithoutLimit().WithName("seen"),
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
