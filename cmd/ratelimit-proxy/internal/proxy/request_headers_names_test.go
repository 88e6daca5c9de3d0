package proxy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHeaderNamesAmbiguousInCGI checks that the proxy removes a header X_Key, and that rules can't use it. CGI
// programs could mistake it for X-Key.
func TestHeaderNamesAmbiguousInCGI(t *testing.T) {
	up := behind(t, nil)
	const conf = `
upstreams: {main: {url: %q}}
rules:
  - {name: list, key: "{header.X-Key}", limit: 9/h, missing: skip, deny: [bad]}
  - {name: plan, match: {headers: {X-Plan: free}}, key: "{client.ip}", limit: 1/h}
`
	p := run(t, parse(t, conf, up.URL))
	require.Equal(t, 403, p.get(t, "/", "X-Key", "bad").StatusCode)
	require.True(t, p.passes(t, "/", "X_Key", "bad", "X_Forwarded_For", "192.0.2.1", "X.Real.IP", "192.0.2.1", "X_Forwarded-Proto", "https", "X-A", "1"))
	got := up.last.Load().Header
	for _, name := range []string{"X_Key", "X_key", "X_Forwarded_For", "X_forwarded_for", "X.Real.IP", "X.real.ip", "X_Forwarded-Proto", "X_forwarded-Proto"} {
		require.NotContains(t, got, name)
	}
	require.Equal(t, "1", got.Get("X-A"))

	p = run(t, parse(t, conf+"headers: {underscores: true}\n", up.URL))
	require.True(t, p.passes(t, "/", "X_Key", "1", "X.Key", "1"))
	require.Equal(t, "1", up.last.Load().Header.Get("X_Key"))
	require.NotContains(t, up.last.Load().Header, "X.key")

	for field, part := range map[string]string{
		"rules[0].match.headers.X_Plan":          "rules: [{name: a, limit: 1/s, match: {headers: {X_Plan: a}}}]",
		"rules[0].tiers[0].match.headers.X_Plan": "rules: [{name: a, limit: 1/s, tiers: [{limit: 2/s, match: {headers: {X_Plan: a}}}]}]",
		"rules[0].key":                           "rules: [{name: a, limit: 1/s, key: '{header.X_Key}'}]",
		"rules[0].cost":                          "rules: [{name: a, limit: 1/s, cost: '{header.X_Cost}'}]",
		"routes[0].match.headers.X_Plan":         "routes: [{upstream: main, match: {headers: {X_Plan: a}}}]",
		"client_header":                          "trusted_proxies: [127.0.0.1]\nclient_header: X_Client",
	} {
		c := "upstreams: {main: {url: http://a}}\n" + part
		require.ErrorContains(t, Check(parse(t, "%s", c)), field+": ")
		require.NoError(t, Check(parse(t, "%s\nheaders: {underscores: true}", c)))
	}
	require.Error(t, Check(parse(t, "upstreams: {main: {url: http://a}}\nheaders: {underscores: true}\nrules: [{name: a, limit: 1/s, key: '{header.X.Key}'}]")))
}

// TestForgedProxyHeaders checks that headers which only proxies send are removed if they come from other clients.
func TestForgedProxyHeaders(t *testing.T) {
	up := behind(t, nil)
	names := []string{
		"X-Forwarded-Ssl", "X-Forwarded-Scheme", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Forwarded-Client-Cert",
		"X-Forwarded", "Forwarded-For", "Forwarded", "X-Scheme", "X-Url-Scheme", "Front-End-Https", "X-Client-Ip", "X-Real-Ip", "True-Client-Ip",
		"Cf-Connecting-Ip", "X-Cluster-Client-Ip", "Fastly-Client-Ip", "X-Original-Url", "X-Original-Forwarded-For", "X-Rewrite-Url", "X-Host",
		"Fly-Client-Ip", "Client-Ip", "X-Remote-Ip", "X-Envoy-External-Address", "X-Arr-Ssl", "Client-Cert", "Proxy", "X-My-Client",
	}
	var forged []string
	for _, name := range names {
		forged = append(forged, name, "192.0.2.1")
	}
	const conf = "upstreams: {main: {url: %q}}\nclient_header: X-My-Client\ntrusted_proxies: [%s]\n"
	p := run(t, parse(t, conf, up.URL, "192.0.2.0/24"))
	require.True(t, p.passes(t, "/", append(forged, "X-Own", "1", "Forwards", "1", "Cf-Own", "1")...))
	got := up.last.Load().Header
	for _, name := range names {
		require.NotContains(t, got, name)
	}
	for _, name := range []string{"X-Own", "Forwards", "Cf-Own", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"} {
		require.Contains(t, got, name)
	}
	require.Equal(t, "127.0.0.1", got.Get("X-Forwarded-For"))

	p = run(t, parse(t, conf, up.URL, "127.0.0.1"))
	require.True(t, p.passes(t, "/", forged...))
	for _, name := range names {
		if !strings.HasPrefix(name, "Forwarded") && name != "Proxy" {
			require.Equal(t, "192.0.2.1", up.last.Load().Header.Get(name), "%s of a trusted proxy", name)
		}
	}
}
