package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hosted is the configuration of a proxy that limits the requests to one host.
const hosted = `
upstreams: {main: {url: %q}}
rules:
  - {name: limit, match: {hosts: [api.example.com., "[::1]"]}, key: "{client.ip}", limit: 1/h}
  - {name: deny, match: {paths: [/deny]}, key: "{host}", limit: 1000/h, deny: [Bad.Example.com.]}
  - {name: each, match: {paths: [/each]}, key: "{host}", limit: 1/h}
`

// TestHostSpellingsDoNotBypassRules checks that the proxy limits or refuses requests with other spellings of a
// limited host.
func TestHostSpellingsDoNotBypassRules(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, hosted, up.URL))
	require.True(t, p.passes(t, "/", "Host", "api.example.com"))
	for _, host := range []string{
		"api.example.com", "API.example.COM", "api.example.com:80", "api.example.com:8080", "api.example.com.", "api.example.com.:80",
		"[::1]", "[::1]:80", "[0:0:0:0:0:0:0:1]", "[0000::0001]:443",
	} {
		got := p.send(t, "GET / HTTP/1.1\r\nConnection: close\r\nHost: "+host+"\r\n\r\n")
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 429 "), "%s: %s", host, got)
		got = p.send(t, "GET http://"+host+"/ HTTP/1.1\r\nConnection: close\r\nHost: other\r\n\r\n")
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 429 "), "http://%s/: %s", host, got)
	}
	before := up.n.Load()
	for _, host := range notHosts {
		got := p.send(t, "GET / HTTP/1.1\r\nConnection: close\r\nHost: "+host+"\r\n\r\n")
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 400 "), "%q: %s", host, got)
	}
	for _, request := range []string{
		"GET http://user@api.example.com/ HTTP/1.1\r\nHost: a",
		"GET http://api%2Eexample.com:/ HTTP/1.1\r\nHost: a",
		"GET http:///x HTTP/1.1\r\nHost: a:1:1",
		"GET / HTTP/1.0",
		"GET / HTTP/1.0\r\nHost:",
	} {
		got := p.send(t, request+"\r\nConnection: close\r\n\r\n")
		require.Regexp(t, `^HTTP/1\.[01] 400 `, got, request)
	}
	require.Equal(t, before, up.n.Load())
}

// notHosts lists invalid values of the Host header.
var notHosts = []string{
	"api.example.com:80:90", "a:1:1", "", ":80", ".", "..", "api.example.com..", ".api.example.com", "api..example.com", "user@api.example.com",
	"api.example.com:", "api.example.com:0", "api.example.com:65536", "api.example.com:+80", "api.example.com:http", "api.example.com:8a",
	"api%2Eexample.com", "api.example.com%00", "api.example.com/", "api.example.com?", "api.example.com#", "api.example.com,other",
	"api.example.com other", "api.example.com;x", "\"api.example.com\"", "api.example.com\\", "bücher.example", "*.example.com",
	"::1", "[::1", "::1]", "[::1]x", "[::1]:", "[::1]:80:90", "[::1]80", "[127.0.0.1]", "[fe80::1%25eth0]", "[v1.x]", "[]", "[api.example.com]",
	strings.Repeat("a", 254),
}

// TestHTTP2Hosts checks that the proxy refuses an invalid :authority over HTTP/2, and one that differs from Host.
func TestHTTP2Hosts(t *testing.T) {
	up := behind(t, nil)
	p := overTLS(t, parse(t, hosted, up.URL))
	require.True(t, p.passes(t, "/", "Host", "api.example.com"))
	require.Equal(t, 429, p.get(t, "/", "Host", "API.Example.com.:443").StatusCode)
	require.Equal(t, 429, p.get(t, "/", "Host", "[0::1]").StatusCode)
	for _, host := range []string{"api.example.com:80:90", "a:1:1", "api.example.com..", "api.example.com:0", "[::1]x"} {
		require.Equal(t, 400, p.get(t, "/", "Host", host).StatusCode, host)
	}
	require.EqualValues(t, 1, up.n.Load())

	r, err := http.NewRequest("GET", "/", nil)
	require.NoError(t, err)
	r.Host, r.Header["Host"] = "a", []string{"api.example.com"}
	require.False(t, hasHost(r), ":authority and Host differ")
	r.Header["Host"] = []string{"A:443"}
	require.True(t, hasHost(r))
}

func TestHostSpellingsShareQuota(t *testing.T) {
	p := run(t, parse(t, hosted, behind(t, nil).URL))
	require.True(t, p.passes(t, "/each", "Host", "a.example"))
	for _, host := range []string{"a.example", "A.EXAMPLE", "a.example.", "a.example:80", "a.example:81"} {
		require.False(t, p.passes(t, "/each", "Host", host), host)
	}
	require.True(t, p.passes(t, "/each", "Host", "[2001:db8::1]"))
	require.False(t, p.passes(t, "/each", "Host", "[2001:DB8:0::1]:80"))
	require.EqualValues(t, 0, statusIn(t, p.get(t, "/status/A.Example:80?rule=each"))["remaining"])
	require.Equal(t, 400, p.get(t, "/status/a:1:1?rule=each").StatusCode)
	for _, host := range []string{"bad.example.com", "BAD.example.com:80"} {
		require.Equal(t, 403, p.get(t, "/deny", "Host", host).StatusCode)
	}
}
