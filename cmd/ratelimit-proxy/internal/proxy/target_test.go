package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClientsCannotChooseUpstream checks that neither Host nor URL of a request changes where the proxy connects.
func TestClientsCannotChooseUpstream(t *testing.T) {
	evil := behind(t, nil)
	up := behind(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "up ", r.Host, " ", r.RequestURI) })
	p := run(t, limited(t, up.URL, "1000/60s"))
	elsewhere := strings.TrimPrefix(evil.URL, "http://")
	for request, want := range map[string]string{
		"GET /x HTTP/1.1\r\nHost: " + elsewhere:                                                   "up " + elsewhere + " /x",
		"GET " + evil.URL + "/x?y HTTP/1.1\r\nHost: other":                                        "up " + elsewhere + " /x?y",
		"GET //" + elsewhere + "/x HTTP/1.1\r\nHost: other":                                       "up other //" + elsewhere + "/x",
		"GET /x HTTP/1.1\r\nHost: a\r\nX-Forwarded-Host: " + elsewhere:                            "up a /x",
		"GET /\\" + elsewhere + " HTTP/1.1\r\nHost: a":                                            "up a /",
		"GET ftp://" + elsewhere + "/x HTTP/1.1\r\nHost: a":                                       "up " + elsewhere + " /x",
		"CONNECT " + elsewhere + " HTTP/1.1\r\nHost: " + elsewhere:                                "501 Not Implemented",
		"CONNECT /x HTTP/1.1\r\nHost: a":                                                          "501 Not Implemented",
		"GET a:" + up.URL + "/admin HTTP/1.1\r\nHost: a":                                          "400 Bad Request",
		"GET x HTTP/1.1\r\nHost: a":                                                               "400 Bad Request",
		"GET / HTTP/1.1":                                                                          "400 Bad Request",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b":                                                    "400 Bad Request",
		"GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: h2c":                "400 Bad Request",
		"GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: foo":                "400 Bad Request",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket, h2c\r\nConnection: u, close":            "400 Bad Request",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nUpgrade: h2c\r\nConnection: u, close": "400 Bad Request",
		"PRI * HTTP/2.0\r\n\r\nSM":                                                                "",
	} {
		before := up.n.Load()
		got := p.send(t, request+connectionClose(request)+"\r\n\r\n")
		require.Contains(t, got, want, "%s", request)
		if !strings.HasPrefix(want, "up ") {
			require.Equal(t, before, up.n.Load(), "%s", request)
		}
	}
	require.Zero(t, evil.n.Load())
}

func connectionClose(request string) string {
	if strings.Contains(request, "Connection:") || !strings.Contains(request, "Host:") {
		return ""
	}
	return "\r\nConnection: close"
}

// TestSmuggling checks that a request whose end is ambiguous is refused, or forwarded in an unambiguous form.
func TestSmuggling(t *testing.T) {
	var seen []string
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.ContentLength, " ", r.TransferEncoding))
	})
	p := run(t, limited(t, up.URL, "1000/60s"))
	const behindIt = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, head := range []string{
		"Content-Length: 5\r\nContent-Length: 6",
		"Content-Length: 5, 6",
		"Content-Length: +5",
		"Content-Length: -5",
		"Content-Length: 0x5",
		"Transfer-Encoding: chunked, identity",
		"Transfer-Encoding: xchunked",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding : chunked",
		" Transfer-Encoding: chunked",
		"Transfer-Encoding: \x0bchunked",
		"X: a\rTransfer-Encoding: chunked",
		"X\x00: a",
	} {
		seen = nil
		got := p.send(t, "POST /outer HTTP/1.1\r\nHost: a\r\n"+head+"\r\n\r\n0\r\n\r\n"+behindIt)
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 400") || strings.HasPrefix(got, "HTTP/1.1 501"), "%q: %s", head, got)
		require.Empty(t, seen, "%q", head)
	}
	// If a request has Content-Length and Transfer-Encoding, the proxy reads chunks, and does not forward the
	// Content-Length.
	got := p.send(t, "POST /outer HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n"+behindIt)
	require.NotContains(t, got, "smuggled")
	require.Equal(t, []string{"POST /outer -1 [chunked]"}, seen)
}

func TestLoops(t *testing.T) {
	var next string
	up := behind(t, nil)
	second := run(t, limited(t, up.URL, "1000/60s"))
	require.Equal(t, 200, second.get(t, "/").StatusCode)
	require.Regexp(t, `^1\.1 ratelimit-proxy-\S+$`, up.last.Load().Header.Get("Via"))

	// The proxy is its own upstream.
	relay := behind(t, func(w http.ResponseWriter, r *http.Request) {
		req, _ := http.NewRequestWithContext(r.Context(), r.Method, next, nil)
		req.Header = r.Header
		res, err := second.client.Do(req)
		if err == nil {
			w.WriteHeader(res.StatusCode)
			_ = res.Body.Close()
		}
	})
	first := run(t, limited(t, relay.URL, "1000/60s"))
	next = first.url
	require.Equal(t, http.StatusLoopDetected, first.get(t, "/").StatusCode)
	require.EqualValues(t, 1, relay.n.Load())
	require.Len(t, first.log.lines("loop: a request"), 1)
	next = second.url
	require.Equal(t, 200, first.get(t, "/").StatusCode, "two proxies in a row are none")
	require.Regexp(t, `^1\.1 ratelimit-proxy-\S+, 1\.1 ratelimit-proxy-\S+$`, up.last.Load().Header.Get("Via"))

	// Another proxy may have added its own Via header.
	own := strings.Fields(up.last.Load().Header.Get("Via"))[3]
	require.Contains(t, second.send(t, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nVia: 1.1 other\r\nVia: 1.1 "+own+"\r\n\r\n"), "508 ")
	require.Contains(t, second.send(t, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nVia: 1.1 other\r\nVia: 1.0 third\r\n\r\n"), "200 OK")
	require.Equal(t, "1.1 other, 1.0 third, 1.1 "+own, up.last.Load().Header.Get("Via"))
	require.NotContains(t, up.last.Load().Header, "User-Agent", "a request without one goes on without one")
}

func TestForwardedHeaders(t *testing.T) {
	up := behind(t, nil)
	forged := []string{
		"X-Forwarded-For", "192.0.2.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "a", "X-Real-Ip", "192.0.2.1",
		"Forwarded", "for=192.0.2.2;proto=https", "X-Forwarded-Port", "1", "Connection", "X-Forwarded-For, X-Secret", "X-Secret", "1",
		"X-RateLimit-Token", "t",
	}
	host := func(p *running) string { return p.addr }
	for _, c := range []struct {
		config string
		want   map[string]string
	}{
		{"", map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "HOST", "X-Real-Ip": "", "X-Forwarded-Port": "", "Forwarded": "", "X-Secret": "", "X-Ratelimit-Token": ""}},
		{"trusted_proxies: [127.0.0.1]", map[string]string{"X-Forwarded-For": "192.0.2.1, 127.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "a", "X-Real-Ip": "192.0.2.1", "Forwarded": ""}},
		{"trusted_proxies: [127.0.0.1]\nclient_header: forwarded", map[string]string{
			"X-Forwarded-For": "192.0.2.2, 127.0.0.1", "Forwarded": "for=192.0.2.2;proto=https"}},
		{"trusted_proxies: [192.0.2.0/24]", map[string]string{"X-Forwarded-For": "127.0.0.1"}},
	} {
		p := run(t, parse(t, "%s\nupstreams: {main: {url: %q}}\n", c.config, up.URL))
		require.Equal(t, 200, p.get(t, "/", forged...).StatusCode)
		for name, want := range c.want {
			require.Equal(t, strings.ReplaceAll(want, "HOST", host(p)), up.last.Load().Header.Get(name), "%s: %s", c.config, name)
		}
	}
}
