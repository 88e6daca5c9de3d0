package ratelimit

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

// A policy works alike with each kind of rule.
func TestPolicyOfEachRule(t *testing.T) {
	for _, tt := range []struct {
		rule     Rule
		fields   string // after the third take of three
		retry    string // of the fourth
		noCount  bool
		noRefund bool
	}{
		{rule: Must(Buckets(BucketOptions{Limit: 3, Per: time.Minute})), fields: `"p";r=0;t=65`, retry: "65"},
		{rule: Must(SlidingLog(LogOptions{Limit: 3, Per: time.Minute})), fields: `"p";r=0;t=60`, retry: "60"},
		{rule: Must(FixedWindow(WindowOptions{Limit: 3, Per: time.Minute})), fields: `"p";r=0;t=60`, retry: "60"},
		{rule: Must(GCRA(GCRAOptions{Limit: 3, Per: time.Minute})), fields: `"p";r=0;t=20`, retry: "20", noCount: true},
	} {
		t.Run(tt.rule.Algorithm(), func(t *testing.T) {
			q := provide(t, Policy{Name: "p", Rules: []Rule{tt.rule}, Key: ByIP()})
			var h http.Header
			for range 3 {
				var res Result
				res, h = q.take("p")
				require.True(t, res.Allowed)
			}
			require.Equal(t, `"p";q=3;w=60`, h.Get("RateLimit-Policy"))
			require.Equal(t, tt.fields, h.Get("RateLimit"))
			res, h := q.take("p")
			require.False(t, res.Allowed)
			require.Equal(t, tt.retry, h.Get("Retry-After"))

			q.hand.now = q.hand.now.Add(2 * time.Minute)
			h = q.serve(func(c *reqctx.Context) {
				l, err := From(c)
				require.NoError(t, err)
				_, err = l.Take()
				require.NoError(t, err)
				n, err := l.Count()
				if tt.noCount {
					require.ErrorIs(t, err, ErrNoCount)
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
				_, err = l.Add(4)
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
	q := provide(t, Policy{Name: "p", Key: ByIP(), Rules: []Rule{
		Must(GCRA(GCRAOptions{Name: "rate", Limit: 60, Per: time.Minute, Burst: 2})),
		Must(FixedWindow(WindowOptions{Name: "hour", Limit: 3, Per: time.Hour})),
		Must(SlidingLog(LogOptions{Name: "seen", Per: time.Hour})),
	}})
	_, h := q.take("p")
	require.Equal(t, `"p.rate";q=60;w=60, "p.hour";q=3;w=3600`, h.Get("RateLimit-Policy"))
	require.Equal(t, `"p.rate";r=1;t=1, "p.hour";r=2;t=3600`, h.Get("RateLimit"))
	q.take("p")
	res, h := q.take("p")
	require.False(t, res.Allowed)
	require.Equal(t, []string{"p.rate"}, res.Err().(*DeniedError).Policies)
	require.Equal(t, "1", h.Get("Retry-After"))
	require.Equal(t, `"p.rate";r=0;t=1, "p.hour";r=1;t=3600`, h.Get("RateLimit"), "the denied one is not charged to the hour")
	q.hand.now = q.hand.now.Add(time.Second)
	res, _ = q.take("p")
	require.True(t, res.Allowed)
	require.Zero(t, res.Remaining)
	q.hand.now = q.hand.now.Add(10 * time.Second)
	res, h = q.take("p")
	require.Equal(t, []string{"p.hour"}, res.Err().(*DeniedError).Policies)
	require.Equal(t, "3589", h.Get("Retry-After"))
}

// A blocked caller is told how long the block lasts.
func TestPolicyThatBlocks(t *testing.T) {
	q := provide(t, Policy{Name: "login", Key: ByIP(), Rules: []Rule{
		Must(FixedWindow(WindowOptions{Limit: 1, Per: time.Minute, Block: Block{After: 2, For: time.Hour}}))}})
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
