package proxy

import (
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// A list matches all spellings of a key with several parts, or with text around its only part.
func TestListsOfKeysWithSeveralParts(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
trusted_proxies: [127.0.0.1]
upstreams: {main: {url: %q}}
rules:
  - name: host
    match: {paths: [/host]}
    key: "{host} {header.Authorization}"
    limit: 3/60s
    deny: ["X Basic QQ==", "y BASIC   QQ=="]
    allow: ["free.example. Bearer a"]
    tiers: [{keys: ["z Bearer a"], limit: 9/60s}]
  - name: query
    match: {paths: [/query]}
    key: "{query.k}|{query.l}"
    limit: 3/60s
    deny: ["a+b|c d"]
    tiers: [{keys: ["f+g|h"], limit: 9/60s}]
  - {name: cookie, match: {paths: [/cookie]}, key: "{cookie.k} {method}", limit: 3/60s, deny: ["%%65nemy GET"]}
  - {name: text, match: {paths: [/text]}, key: "key-{header.X-Api-Key}", limit: 3/60s, deny: [key-enemy], allow: [key-friend]}
  - {name: path, match: {paths: ["/path/**"]}, key: "{client.ip} {path}", limit: 3/60s, deny: ["192.0.2.1 /path//a/", "::ffff:192.0.2.2 /path/b", "2001:DB8::1 /path/c"]}
`, up.URL))
	denied := func(path string, headers ...string) {
		t.Helper()
		require.Equal(t, 403, p.get(t, path, headers...).StatusCode, "%s %v", path, headers)
	}
	limit := func(path string, headers ...string) string {
		t.Helper()
		a := p.get(t, path, headers...)
		require.Equal(t, 200, a.StatusCode, "%s %v", path, headers)
		return a.Header.Get("X-RateLimit-MaxRequests")
	}
	for _, host := range []string{"x", "X.", "y:80"} {
		denied("/host", "Host", host, "Authorization", "Basic QQ==")
		denied("/host", "Host", host, "Authorization", "basic\t QQ==")
		denied("/host", "Host", host, "Authorization", "Basic other", "Authorization", "Basic QQ==")
	}
	require.Equal(t, "3", limit("/host", "Host", "x", "Authorization", "Basic qq=="))
	require.Empty(t, limit("/host", "Host", "Free.example", "Authorization", "bearer  a"))
	require.Equal(t, "9", limit("/host", "Host", "z", "Authorization", "BEARER a"))
	require.Equal(t, "3", limit("/host", "Host", "z", "Authorization", "Bearer a", "Authorization", "Bearer b"))

	for _, query := range []string{"k=a+b&l=c+d", "k=a%2Bb&l=c%20d", "l=c+d&k=x&k=a%20b&l=x"} {
		denied("/query?" + query)
	}
	require.Equal(t, "3", limit("/query?k=a+b"), "without the other part there is no key")
	require.Equal(t, "9", limit("/query?k=f+g&l=h"))
	denied("/cookie", "Cookie", "k=enemy")
	denied("/cookie", "Cookie", "k=x; k=%65nemy")

	denied("/text", "X-Api-Key", "enemy")
	denied("/text", "X-Api-Key", "enemy", "X-Api-Key", "x")
	denied("/text", "X-Api-Key", "friend", "X-Api-Key", "enemy")
	require.Empty(t, limit("/text", "X-Api-Key", "friend"))
	require.Equal(t, "3", limit("/text", "X-Api-Key", "friend", "X-Api-Key", "x"))

	denied("/path/a", "X-Forwarded-For", "192.0.2.1")
	denied("/path/a/", "X-Forwarded-For", "64:ff9b::192.0.2.1")
	denied("/path/b", "X-Forwarded-For", "192.0.2.2")
	denied("/path/c", "X-Forwarded-For", "2001:db8:0::1")
	require.Equal(t, "3", limit("/path/a", "X-Forwarded-For", "192.0.2.2"))
}

// A request with many values costs as much as it has values, not as many as it has combinations.
func TestManyValuesAreDenied(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: a, key: '{query.a}|{query.b}|{query.c}', missing: skip, limit: 3/60s, deny: ['x|y|z']}]\n", up.URL))
	many := strings.Repeat("&a=1&b=1&c=1", 3000)
	require.Equal(t, 200, p.get(t, "/?"+url.QueryEscape("q")+many+"&a=x&b=y").StatusCode)
	require.Equal(t, 403, p.get(t, "/?a=x"+many+"&b=y&c=z").StatusCode)
}

// An entry such as 192.0.2.7 is an address. To be safe, it also denies the key with this value.
func TestEntriesThatLookLikeAddresses(t *testing.T) {
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: a, key: '{host}', limit: 3/60s, deny: [192.0.2.7], allow: [192.0.2.8]}]\n", behind(t, nil).URL))
	require.Equal(t, 403, p.get(t, "/", "Host", "192.0.2.7").StatusCode)
	require.Equal(t, "3", p.get(t, "/", "Host", "192.0.2.8").Header.Get("X-RateLimit-MaxRequests"))
}

// A condition on the credentials is met by all spellings of them.
func TestMatchOfAuthorization(t *testing.T) {
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: a, match: {headers: {authorization: 'Basic QQ=='}}, limit: 3/60s}]\n", behind(t, nil).URL))
	for _, spelled := range []string{"Basic QQ==", "basic  QQ==", "BASIC\tQQ=="} {
		require.Equal(t, "3", p.get(t, "/", "Authorization", spelled).Header.Get("X-RateLimit-MaxRequests"), spelled)
	}
	require.Empty(t, p.get(t, "/", "Authorization", "Basic qq==").Header.Get("X-RateLimit-MaxRequests"))
}

// A tier by address also has the addresses that NAT64 has translated.
func TestTierOfNAT64Address(t *testing.T) {
	p := run(t, parse(t, "trusted_proxies: [127.0.0.1]\nupstreams: {main: {url: %q}}\nrules: [{name: a, key: '{client.ip}', limit: 3/60s, tiers: [{keys: [192.0.2.1], limit: 9/60s}]}]\n", behind(t, nil).URL))
	for _, address := range []string{"192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::c000:201"} {
		require.Equal(t, "9", p.get(t, "/", "X-Forwarded-For", address).Header.Get("X-RateLimit-MaxRequests"), address)
	}
	require.Equal(t, "3", p.get(t, "/", "X-Forwarded-For", "192.0.2.2").Header.Get("X-RateLimit-MaxRequests"))
}

func TestListsMatchNAT64Addresses(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	key := config.Key{{Kind: "client", Name: "ip"}}
	for _, c := range []struct {
		entry, address string
		want           bool
	}{
		{"198.51.100.7", "198.51.100.7", true},
		{"198.51.100.7", "64:ff9b::198.51.100.7", true},
		{"198.51.100.7", "64:ff9b::198.51.100.8", false},
		{"198.51.100.0/24", "64:ff9b::198.51.100.8", true},
		{"64:ff9b::198.51.100.7", "198.51.100.7", true},
		{"64:ff9b::198.51.100.0/120", "198.51.100.7", true},
		{"64:ff9b::/96", "64:ff9b::198.51.100.7", true},
		{"64:ff9b::/64", "64:ff9b::198.51.100.7", true},
		{"::ffff:198.51.100.7", "64:ff9b::198.51.100.7", true},
		{"198.51.100.7", "64:ff9b:1::198.51.100.7", false},
	} {
		l := newACL([]string{c.entry}, key, true)
		require.Equal(t, c.want, l.denies(r, netip.MustParseAddr(c.address)), "%s: %s", c.entry, c.address)
	}
	require.False(t, newACL([]string{"0.0.0.0/0", "::/0"}, key, false).allows(r, netip.Addr{}))
}
