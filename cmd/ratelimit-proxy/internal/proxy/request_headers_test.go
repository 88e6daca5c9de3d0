package proxy

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

func TestUpstreamRateLimitHeadersAreKept(t *testing.T) {
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("RateLimit", `"up";r=5;t=7`)
		h.Set("RateLimit-Policy", `"up";q=6;w=8`)
		h.Set("X-RateLimit-Limit", "6")
		h.Set("Retry-After", "77")
		if r.URL.Path == "/own" {
			h.Set("X-RateLimit-Remaining", "5")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	p := run(t, limited(t, up.URL, "10/60s"))
	a := p.get(t, "/")
	require.Equal(t, `"up";r=5;t=7, "limit";r=9;t=60`, a.Header.Get("RateLimit"))
	require.Equal(t, `"up";q=6;w=8, "limit";q=10;w=60`, a.Header.Get("RateLimit-Policy"))
	require.Equal(t, []string{"6"}, a.Header["X-Ratelimit-Limit"])
	require.Equal(t, []string{"77"}, a.Header["Retry-After"])
	require.Equal(t, "9", a.Header.Get("X-RateLimit-Remaining"))
	a = p.get(t, "/own")
	require.Equal(t, []string{"5"}, a.Header["X-Ratelimit-Remaining"])
	require.Empty(t, a.Header["X-Ratelimit-Maxrequests"], "no mixture of both")
}

func TestHeadersOfRuleWithLeastRemaining(t *testing.T) {
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: a, limit: 9/h}, {name: b, limit: 2/h}, {name: c, limit: 5/h}]\n", behind(t, nil).URL))
	a := p.get(t, "/")
	require.Equal(t, "2", a.Header.Get("X-RateLimit-MaxRequests"))
	require.Equal(t, "1", a.Header.Get("X-RateLimit-Remaining"))
}

func TestResponseHeaders(t *testing.T) {
	for selection, sends := range map[string]struct{ draft, x bool }{
		"draft-10": {draft: true}, "x-ratelimit": {x: true}, "both": {draft: true, x: true}, "none": {},
	} {
		p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 1/60s, response_headers: %s}]\n", behind(t, nil).URL, selection))
		for _, status := range []int{200, 429} {
			a := p.get(t, "/")
			require.Equal(t, status, a.StatusCode)
			require.Equal(t, status == 429, a.Header.Get("Retry-After") != "")
			for _, name := range []string{"Ratelimit", "Ratelimit-Policy"} {
				require.Equal(t, sends.draft, a.Header[name] != nil, "%s: %s", selection, name)
			}
			for _, name := range statusHeaders {
				require.Equal(t, sends.x, a.Header[name] != nil, "%s: %s", selection, name)
			}
			require.Equal(t, status == 429 && sends.draft, strings.Contains(a.body, "violated-policies"), selection)
		}
	}
}

// TestHiddenRule checks that no response describes a rule without response headers, even if it has the fewest units
// left or denies, and that the other rules are still described. After a reload, the rule is described.
func TestHiddenRule(t *testing.T) {
	up := behind(t, nil)
	conf := func(selection string) config.Config {
		return parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: all, limit: 9/60s}, {name: login, limit: 2/60s, response_headers: %s}]\n", up.URL, selection)
	}
	p := run(t, conf("none"))
	requireFields := func(a answer, draft, remaining string) {
		t.Helper()
		require.Equal(t, draft, a.Header.Get("RateLimit"))
		require.Equal(t, remaining, a.Header.Get("X-RateLimit-Remaining"))
	}
	requireFields(p.get(t, "/"), `"all";r=8;t=60`, "8")
	requireFields(p.get(t, "/"), `"all";r=7;t=60`, "7")
	a := p.get(t, "/")
	require.Equal(t, 429, a.StatusCode)
	require.NotContains(t, a.body, "login")
	requireFields(a, `"all";r=7;t=60`, "") // this unit was refunded
	require.NoError(t, p.reload(conf("both")))
	requireFields(p.get(t, "/"), `"all";r=7;t=60, "login";r=0;t=60`, "0")
}

// TestEarlyHints checks that an informational response (1xx) is forwarded, without the headers of the limits, which
// are in the final response.
func TestEarlyHints(t *testing.T) {
	p := run(t, limited(t, behind(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "body")
	}).URL, "10/60s"))
	hints := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints++
		require.Equal(t, "</x>; rel=preload", h.Get("Link"))
		require.Empty(t, h.Get("RateLimit"))
		return nil
	}})
	req, err := http.NewRequestWithContext(ctx, "GET", p.url, nil)
	require.NoError(t, err)
	res, err := p.client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, 1, hints)
	require.Equal(t, "9", res.Header.Get("X-RateLimit-Remaining"))
	require.Equal(t, `"limit";r=9;t=60`, res.Header.Get("RateLimit"))
}

// TestNoContentTypeIsGuessed checks that the proxy does not add a Content-Type to a response. A guessed text/html
// could make browsers run scripts.
func TestNoContentTypeIsGuessed(t *testing.T) {
	up := answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Content-Type-Options: nosniff\r\n\r\n<html>", false)
	for _, p := range []*running{run(t, limited(t, up, "10/60s")), overTLS(t, limited(t, up, "10/60s"))} {
		a := p.get(t, "/")
		require.Equal(t, "<html>", a.body)
		require.NotContains(t, a.Header, "Content-Type")
	}
}

// TestHTTP10 checks that clients with HTTP/1.0 get no informational responses (1xx) and no upgrades.
func TestHTTP10(t *testing.T) {
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		require.Empty(t, r.Header["Upgrade"])
		w.Header().Set("Link", "</x>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "body")
	})
	p := run(t, limited(t, up.URL, "10/60s"))
	for _, upgrade := range []string{"", "Upgrade: websocket\r\nConnection: Upgrade\r\n", "Upgrade: h2c\r\nConnection: Upgrade\r\n"} {
		got := p.send(t, "GET / HTTP/1.0\r\nHost: a\r\n"+upgrade+"\r\n")
		require.True(t, strings.HasPrefix(got, "HTTP/1.0 200 OK\r\n"), got)
		require.True(t, strings.HasSuffix(got, "\r\n\r\nbody"), got)
		require.Contains(t, got, "\r\nLink: </x>")
	}
}

func TestNoHeadersWithoutRules(t *testing.T) {
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 1/60s, match: {paths: [/x]}}]\n", behind(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		require.Empty(t, r.UserAgent())
		require.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
	}).URL))
	a := p.get(t, "/", "User-Agent", "", "Accept-Encoding", "gzip")
	a.Header.Del("Date")
	require.Equal(t, http.Header{"Content-Length": {"0"}}, a.Header)
}

func TestHeadRangeAndNotModified(t *testing.T) {
	p := run(t, limited(t, behind(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"v1"`)
		http.ServeContent(w, r, "x.txt", newClock().Now(), readSeeker("0123456789"))
	}).URL, "10/60s"))
	a := p.do(t, "HEAD", "/", nil)
	require.Equal(t, "10", a.Header.Get("Content-Length"))
	require.Equal(t, "9", a.Header.Get("X-RateLimit-Remaining"))
	a = p.get(t, "/", "Range", "bytes=2-4")
	require.Equal(t, 206, a.StatusCode)
	require.Equal(t, "234", a.body)
	require.Equal(t, 304, p.get(t, "/", "If-None-Match", `"v1"`).StatusCode)
}
