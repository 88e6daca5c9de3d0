package ratelimit_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

var (
	draftFields = http.Header{"Ratelimit-Policy": {`"ip";q=2;w=60`}}
	xFields     = http.Header{"X-Ratelimit-Limit": {"2"}}
)

// fieldsOf maps each selection to fields that do not change with the number of remaining units.
var fieldsOf = map[ratelimit.HeaderFields][]http.Header{
	ratelimit.HeadersDraft10:     {draftFields},
	ratelimit.HeadersX:           {xFields},
	ratelimit.HeadersDraft10AndX: {draftFields, xFields},
	ratelimit.HeadersNone:        {},
}

// limitFields returns header fields for remaining units. seconds is the value of Reset, and t.
func limitFields(of []http.Header, remaining, seconds string) http.Header {
	h := http.Header{}
	for _, fields := range of {
		maps.Copy(h, fields)
	}
	if h["Ratelimit-Policy"] != nil {
		h["Ratelimit"] = []string{`"ip";r=` + remaining + ";t=" + seconds}
	}
	if h["X-Ratelimit-Limit"] != nil {
		h["X-Ratelimit-Remaining"], h["X-Ratelimit-Reset"] = []string{remaining}, []string{seconds}
	}
	return h
}

func TestHeaderFields(t *testing.T) {
	for selection, of := range fieldsOf {
		p := ipPolicy("ip", 2)
		p.Headers = selection
		q := provide(t, p)
		_, h := q.take("ip")
		require.Equal(t, limitFields(of, "1", "65"), h, selection)
		h = q.serve(func(c *reqctx.Host) {
			must(p.Take(c))
			require.True(t, must(p.Refund(c)))
		})
		require.Equal(t, limitFields(of, "1", "65"), h, "%d: after a refund", selection)
		q.take("ip")

		res, h := q.take("ip")
		want := limitFields(of, "0", "65")
		want["Retry-After"], want["Cache-Control"] = []string{"65"}, []string{"no-store"}
		require.Equal(t, want, h, selection)
		denied := res.Err().(*ratelimit.DeniedError)
		require.Equal(t, []string{"ip"}, denied.Policies, selection)
		_, members := denied.Problem()
		if slices.ContainsFunc(of, func(h http.Header) bool { return h["Ratelimit-Policy"] != nil }) {
			require.Equal(t, []string{"ip"}, members["violated-policies"])
		} else {
			require.NotContains(t, members, "violated-policies", selection)
		}
	}
}

// TestHeaderFieldsOfSeveralPolicies checks that a policy without fields does not change those of others, even if it has
// the fewest units left or denies.
func TestHeaderFieldsOfSeveralPolicies(t *testing.T) {
	login := ipPolicy("login", 1)
	login.Headers = ratelimit.HeadersNone
	ip := ipPolicy("ip", 2)
	ip.Headers = ratelimit.HeadersDraft10AndX
	q := provide(t, login, ip)
	_, h := q.take("login", "ip")
	require.Equal(t, limitFields(fieldsOf[ip.Headers], "1", "65"), h)
	_, h = q.take("ip", "login")
	want := limitFields(fieldsOf[ip.Headers], "0", "65")
	want["Retry-After"], want["Cache-Control"] = []string{"65"}, []string{"no-store"}
	require.Equal(t, want, h)
}

func TestUnknownHeaderFields(t *testing.T) {
	p := ipPolicy("ip", 2)
	p.Headers = ratelimit.HeadersNone + 1
	require.EqualError(t, ratelimit.Check(p),
		`ratelimit: policy "ip": Headers is 4, want a constant such as HeadersNone`)
}

// TestXFieldsDescribeOneRule checks that the X-RateLimit fields have the reset of the rule whose units they count.
func TestXFieldsDescribeOneRule(t *testing.T) {
	p := ipPolicy("ip", 9)
	p.Headers = ratelimit.HeadersX
	p.Rules = []ratelimit.Rule{ratelimit.FixedWindow(9, time.Hour), ratelimit.FixedWindow(2, time.Second), ratelimit.FixedWindow(3, time.Minute)}
	q := provide(t, p)
	for _, want := range [][3]string{{"2", "1", "1"}, {"2", "0", "1"}, {"2", "0", "1"}} {
		_, h := q.take("ip")
		require.Equal(t, want, [3]string{h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Reset")})
	}
	q.hand.now = q.hand.now.Add(2 * time.Second)
	_, h := q.take("ip")
	require.Equal(t, "58", h.Get("X-RateLimit-Reset"), "3 per minute has the longest wait of those that have no units left")

	p.Rules = []ratelimit.Rule{ratelimit.Concurrent(1), ratelimit.PerHour(9)}
	_, h = provide(t, p).take("ip")
	require.Equal(t, "1", h.Get("X-RateLimit-Reset"), "a unit may come back at any moment")
}
