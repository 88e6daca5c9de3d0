package ratelimit_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestUnit(t *testing.T) {
	p := ipPolicy("ip", 5)
	p.Unit = "content-bytes"
	q := provide(t, p)
	_, h := q.take("ip")
	require.Equal(t, `"ip";q=5;qu="content-bytes";w=60`, h.Get("RateLimit-Policy"))
}

// Integers of structured fields have at most 15 digits.
func TestHugeLimit(t *testing.T) {
	q := provide(t, ipPolicy("ip", 1<<53))
	_, h := q.take("ip")
	require.Equal(t, `"ip";q=999999999999999;w=60`, h.Get("RateLimit-Policy"))
	require.Equal(t, `"ip";r=999999999999999;t=65`, h.Get("RateLimit"))
}

// What a handler or a proxy has put there stays, if it can.
func TestExistingHeader(t *testing.T) {
	p := ipPolicy("ip", 1)
	p.XHeaders = true
	q := provide(t, p)
	q.take("ip")
	for _, tt := range []struct{ name, had, want string }{
		{"RateLimit", `"up";r=1`, `"up";r=1, "ip";r=0;t=65`},
		{"RateLimit", "", `"ip";r=0;t=65`},
		{"RateLimit-Policy", "\x00\n;;", "\x00\n;;, " + `"ip";q=1;w=60`},
		{"Retry-After", "100", "100"},
		{"Retry-After", "10", "65"},
		{"Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT", "65"},
		{"Retry-After", "99999999999999999999", "65"},
		{"X-RateLimit-Remaining", "x", "0"},
		{"X-RateLimit-Remaining", "-5", "-5"},
		{"Cache-Control", "public, max-age=60", "no-store"},
	} {
		c, h := reqctx.New(t.Context(), q.reg), http.Header{}
		c.SetRequest(&http.Request{RemoteAddr: "192.0.2.1:1"})
		h.Set(tt.name, tt.had)
		l := must(ratelimit.From(c))
		must(l.Take())
		require.NoError(t, c.Commit(http.StatusOK, h))
		require.Equal(t, []string{tt.want}, h.Values(tt.name), "%s: %s", tt.name, tt.had)
		require.NoError(t, c.Finish())
	}

	lines := http.Header{"Ratelimit": {`"a";r=1`, "", `"b";r=2`}}
	ratelimit.AddMembers(lines, "Ratelimit", `"c";r=3`)
	require.Equal(t, []string{`"a";r=1, "b";r=2, "c";r=3`}, lines["Ratelimit"])
}

// Requests share no memory through their headers.
func TestHeadersAreNotShared(t *testing.T) {
	q := provide(t, ipPolicy("ip", 9))
	_, one := q.take("ip")
	one["Ratelimit-Policy"][0] = "overwritten"
	one["Ratelimit-Policy"] = append(one["Ratelimit-Policy"], "appended")
	require.Equal(t, []string{`"ip";r=8;t=65`}, one["Ratelimit"])
	_, two := q.take("ip")
	require.Equal(t, []string{`"ip";q=9;w=60`}, two["Ratelimit-Policy"])
}

// An allowed take says nothing about caches and retries.
func TestAllowedTakeHasNoRetryAfter(t *testing.T) {
	q := provide(t, ipPolicy("ip", 1))
	_, h := q.take("ip")
	require.NotContains(t, h, "Retry-After")
	require.NotContains(t, h, "Cache-Control")
	q.hand.now = q.hand.now.Add(65*time.Second - time.Microsecond)
	_, h = q.take("ip")
	require.Equal(t, "1", h.Get("Retry-After"), "at least 1")
}

// A GCRA's burst may be larger than its limit: what the fields say is left isn't.
func TestRemainingIsAtMostTheLimit(t *testing.T) {
	gcra := func(name string, limit, burst int64) ratelimit.Rule {
		return ratelimit.GCRA(limit, time.Minute).WithBurst(burst).WithName(name)
	}
	for _, c := range []struct {
		rules     []ratelimit.Rule
		left      []string // of the fields RateLimit, without their t
		remaining []string // X-RateLimit-Remaining
		limit     string
	}{
		{[]ratelimit.Rule{gcra("", 3, 5)}, []string{`"p";r=3`, `"p";r=3`, `"p";r=2`, `"p";r=1`, `"p";r=0`, `"p";r=0`}, []string{"3", "3", "2", "1", "0", "0"}, "3"},
		{[]ratelimit.Rule{gcra("", 5, 3)}, []string{`"p";r=2`, `"p";r=1`, `"p";r=0`, `"p";r=0`}, []string{"2", "1", "0", "0"}, "5"},
		{
			[]ratelimit.Rule{gcra("a", 2, 4), gcra("b", 1000, 1000)},
			[]string{`"p.a";r=2, "p.b";r=999`, `"p.a";r=2, "p.b";r=998`, `"p.a";r=1, "p.b";r=997`}, []string{"2", "2", "1"}, "2",
		},
	} {
		q := provide(t, &ratelimit.Policy{Name: "p", Rules: c.rules, Key: ratelimit.ByIP(), XHeaders: true})
		for i := range c.left {
			_, h := q.take("p")
			left := regexp.MustCompile(`;t=\d+`).ReplaceAllString(h.Get("RateLimit"), "")
			require.Equal(t, c.left[i], left, "take %d", i)
			require.Equal(t, c.remaining[i], h.Get("X-RateLimit-Remaining"), "take %d", i)
			require.Equal(t, c.limit, h.Get("X-RateLimit-Limit"), "take %d", i)
		}
	}
}
