package proxy

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatusByPath(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
status: {path: /limits/}
rules:
  - {name: several, key: "{header.X-A}{header.X-B}", limit: 100/60s}
  - {name: auth, limit: 10/60s}
  - {name: key, key: "{header.X-Key}", limit: 5/60s}
  - {name: cookie, key: "{cookie.id}", limit: 6/60s}
  - {name: query, key: "{query.q}", limit: 7/60s}
  - {name: address, key: "{client.ip}", limit: 8/60s}
  - {name: path, key: "{path}", limit: 9/60s}
  - {name: host, key: "{host}", limit: 11/60s}
  - {name: method, key: "{method}", limit: 12/60s}
`, up.URL))
	value := "Bearer a/b c%?&=+ä"
	require.True(t, p.passes(t, "/some/path?q=a%2Fb", "Authorization", value, "X-Key", "k/1", "Cookie", "id=c", "Host", "example.com"))
	ask := func(value, query string) map[string]int64 {
		return statusIn(t, p.get(t, "/limits/"+url.PathEscape(value)+query))
	}
	require.EqualValues(t, 9, ask(value, "")["remaining"])
	require.EqualValues(t, 10, ask("Bearer other", "")["remaining"])
	for rule, of := range map[string]struct {
		value string
		left  int64
	}{
		"auth": {value, 9}, "key": {"k/1", 4}, "cookie": {"c", 5}, "query": {"a/b", 6}, "address": {"127.0.0.1", 7},
		"path": {"/some/path", 8}, "host": {"example.com", 10}, "method": {"GET", 11},
	} {
		require.Equal(t, of.left, ask(of.value, "?rule="+rule)["remaining"], rule)
	}
	for path, status := range map[string]int{
		"/limits/x?rule=unknown": 404, "/limits/x?rule=several": 400, "/limits/": 400, "/limits/x?rule=address": 400,
	} {
		require.Equal(t, status, p.get(t, path).StatusCode, path)
	}
	require.Equal(t, 405, p.do(t, "POST", "/limits/x", nil).StatusCode)
	require.Equal(t, "no-store", p.get(t, "/limits/x").Header.Get("Cache-Control"))
	require.EqualValues(t, 1, up.n.Load())
	require.Equal(t, "ok", p.get(t, "/status/x", "Authorization", value).body, "only at status.path")
}

func TestStatusAuthorization(t *testing.T) {
	up := behind(t, nil)
	const forwarded = "X-Forwarded-For"
	for _, c := range []struct {
		config  string
		headers []string
		path    int // the response's status if the request asks with the path
		header  int // the response's status if the request asks with the header
	}{
		{"", nil, 404, 404}, // a proxy on this machine may have forwarded the request
		{"", []string{"Authorization", "Bearer ", "X-RateLimit-Token", ""}, 404, 404},
		{"trusted_proxies: [127.0.0.1]", []string{forwarded, "127.0.0.1"}, 404, 404},
		{"status: {allow: [127.0.0.1]}", nil, 200, 200},
		{"status: {allow: [127.0.0.1]}", []string{forwarded, "192.0.2.1"}, 403, 403}, // forwarded for another client by a proxy that is not trusted
		{"status: {allow: [127.0.0.1]}", []string{"Forwarded", "for=127.0.0.1"}, 403, 403},
		{"status: {allow: [127.0.0.1]}", []string{"X-Real-IP", "192.0.2.1"}, 403, 403},
		{"status: {allow: [127.0.0.1]}", []string{"Via", "1.1 other-proxy"}, 403, 403},
		{"trusted_proxies: [127.0.0.1]\nstatus: {allow: [127.0.0.1]}", []string{forwarded, "192.0.2.1"}, 403, 403},
		{"trusted_proxies: [127.0.0.1]\nstatus: {allow: [192.0.2.1]}", []string{forwarded, "192.0.2.1"}, 200, 200},
		{"status: {allow: [192.0.2.0/24]}", nil, 403, 403},
		{"status: {token: s3cret}", nil, 403, 403},
		{"status: {token: s3cret}", []string{"Authorization", "Bearer s3cret", "X-RateLimit-Token", "s3cret"}, 200, 200},
		{"status: {token: s3cret}", []string{"Authorization", "bearer s3cret", "X-RateLimit-Token", "s3cret"}, 200, 200},
		{"status: {allow: [192.0.2.1], token: s3cret}", []string{"Authorization", "Bearer s3cre", "X-RateLimit-Token", "s3crets"}, 403, 403},
		{"status: {allow: [192.0.2.1], token: s3cret}", []string{"Authorization", "s3cret"}, 403, 403},
		{"status: {allow: [192.0.2.1]}", []string{"Authorization", "Bearer ", "X-RateLimit-Token", ""}, 403, 403},
	} {
		up.n.Store(0)
		p := run(t, parseAlone(t, "%s\nupstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 10/60s}]\n", c.config, up.URL))
		want := func(got, want int) {
			require.Equal(t, want, got, "%s %v", c.config, c.headers)
			require.Zero(t, up.n.Load())
		}
		want(p.get(t, "/status/x", c.headers...).StatusCode, c.path)
		want(p.get(t, "/", append(c.headers, "X-RateLimit-Status", "true")...).StatusCode, c.header)
	}
}

func TestStatusWithoutRule(t *testing.T) {
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: r, match: {paths: [/x]}, limit: 1/s}]\n", behind(t, nil).URL))
	require.Equal(t, 404, p.get(t, "/", "X-RateLimit-Status", "true").StatusCode)
	p = run(t, parse(t, "upstreams: {main: {url: %q}}\n", behind(t, nil).URL))
	require.Equal(t, 404, p.get(t, "/status/x").StatusCode)
}

// TestStatusHeaderValues checks that a request with an unclear X-RateLimit-Status is refused and not charged.
func TestStatusHeaderValues(t *testing.T) {
	up := behind(t, nil)
	p := run(t, limited(t, up.URL, "10/60s"))
	for _, yes := range []string{"true", "True", "TRUE", "yes", "1", " true "} {
		require.EqualValues(t, 10, statusIn(t, p.get(t, "/", "X-RateLimit-Status", yes))["remaining"], yes)
	}
	for _, other := range [][]string{{""}, {"2"}, {"on"}, {"t"}, {"true, true"}, {"true", "true"}, {"false", "true"}} {
		var headers []string
		for _, v := range other {
			headers = append(headers, "X-RateLimit-Status", v)
		}
		a := p.get(t, "/", headers...)
		require.Equal(t, 400, a.StatusCode, "%q", other)
		require.Contains(t, a.body, "X-RateLimit-Status must be true, yes or 1")
	}
	require.Zero(t, up.n.Load())
	for _, no := range []string{"false", "FALSE", "no", "0"} {
		require.Equal(t, "ok", p.get(t, "/", "X-RateLimit-Status", no).body)
	}
	require.EqualValues(t, 6, p.status(t, "/")["remaining"])
}
