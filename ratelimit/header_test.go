package ratelimit_test

import (
	"net/http"
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

// TestCalendarHeader checks that the field has no w, because a month has no fixed length.
func TestCalendarHeader(t *testing.T) {
	p := ipPolicy("ip", 5)
	p.Rules = []ratelimit.Rule{ratelimit.Calendar(5, ratelimit.Month, time.UTC), ratelimit.Calendar(9, ratelimit.Day, time.UTC)}
	q := provide(t, p)
	_, h := q.take("ip")
	require.Equal(t, `"ip.month";q=5, "ip.day";q=9`, h.Get("RateLimit-Policy"))
	require.Regexp(t, `^"ip.month";r=4;t=\d+, "ip.day";r=8;t=\d+$`, h.Get("RateLimit"))
}

// TestHugeLimit checks that a limit with more than 15 digits, which structured fields do not allow, is sent as 15 nines.
func TestHugeLimit(t *testing.T) {
	q := provide(t, ipPolicy("ip", 1<<53))
	_, h := q.take("ip")
	require.Equal(t, `"ip";q=999999999999999;w=60`, h.Get("RateLimit-Policy"))
	require.Equal(t, `"ip";r=999999999999999;t=65`, h.Get("RateLimit"))
}

// TestExistingHeader checks how the fields of a take are combined with fields that the response already has.
func TestExistingHeader(t *testing.T) {
	p := ipPolicy("ip", 1)
	p.Headers = ratelimit.HeadersDraft10AndX
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

// TestHeadersAreNotShared checks that changes of a response's header do not affect later responses.
func TestHeadersAreNotShared(t *testing.T) {
	q := provide(t, ipPolicy("ip", 9))
	_, one := q.take("ip")
	one["Ratelimit-Policy"][0] = "overwritten"
	one["Ratelimit-Policy"] = append(one["Ratelimit-Policy"], "appended")
	require.Equal(t, []string{`"ip";r=8;t=65`}, one["Ratelimit"])
	_, two := q.take("ip")
	require.Equal(t, []string{`"ip";q=9;w=60`}, two["Ratelimit-Policy"])
}

// TestRemainingIsAtMostTheLimit checks the fields of a GCRA whose burst is larger than its limit.
func TestRemainingIsAtMostTheLimit(t *testing.T) {
	rule := ratelimit.GCRA(3, time.Minute).WithBurst(5)
	q := provide(t, &ratelimit.Policy{Name: "p", Rules: []ratelimit.Rule{rule}, Key: ratelimit.ByIP(), Headers: ratelimit.HeadersDraft10AndX})
	for _, left := range []string{"3", "3", "2", "1", "0", "0"} {
		_, h := q.take("p")
		require.Contains(t, h.Get("RateLimit"), `"p";r=`+left+";")
		require.Equal(t, left, h.Get("X-RateLimit-Remaining"))
		require.Equal(t, "3", h.Get("X-RateLimit-Limit"))
	}
}
