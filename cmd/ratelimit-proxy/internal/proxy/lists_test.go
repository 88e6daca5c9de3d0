package proxy

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// TestListsMatchAllSpellings checks that entries and requests are brought into the same form before they are compared.
func TestListsMatchAllSpellings(t *testing.T) {
	p := run(t, parse(t, `
trusted_proxies: [127.0.0.1]
upstreams: {main: {url: %q}}
rules:
  - {name: host, match: {paths: [/host]}, key: "{host}", limit: 3/60s, deny: [X.], allow: [Free.example], tiers: [{keys: [Z], limit: 9/60s}]}
  - {name: query, match: {paths: [/query]}, key: "{query.k}", limit: 3/60s, deny: ["a+b"], tiers: [{keys: ["f+g"], limit: 9/60s}]}
  - {name: cookie, match: {paths: [/cookie]}, key: "{cookie.k}", limit: 3/60s, deny: ["%%65nemy"]}
  - {name: path, match: {paths: ["/path/**"]}, key: "{path}", limit: 3/60s, deny: ["/path//a/"]}
  - {name: ip, match: {paths: [/ip]}, key: "{client.ip}", limit: 3/60s, deny: ["::ffff:192.0.2.2", "2001:DB8::1"]}
  - {name: parts, match: {paths: [/parts]}, key: "{host} {client.ip}", limit: 3/60s, deny: ["192.0.2.1"]}
`, behind(t, nil).URL))
	for _, denied := range [][]string{
		{"/host", "Host", "x:80"}, {"/query?k=a%2Bb"}, {"/query?k=x&k=a%20b"}, {"/cookie", "Cookie", "k=enemy"}, {"/path/a"},
		{"/ip", "X-Forwarded-For", "64:ff9b::192.0.2.2"}, {"/ip", "X-Forwarded-For", "2001:db8:0::1"}, {"/parts", "X-Forwarded-For", "192.0.2.1"},
	} {
		require.Equal(t, 403, p.get(t, denied[0], denied[1:]...).StatusCode, "%v", denied)
	}
	limit := func(path string, headers ...string) string {
		return p.get(t, path, headers...).Header.Get("X-RateLimit-MaxRequests")
	}
	require.Empty(t, limit("/host", "Host", "FREE.example."))
	require.Equal(t, "9", limit("/host", "Host", "z"))
	require.Equal(t, "9", limit("/query?k=f%20g"))
	require.Equal(t, "3", limit("/query?k=f%20g&k=f%20g"))
	require.Equal(t, "3", limit("/parts"))
}

// TestEntriesThatLookLikeAddresses checks an entry such as 192.0.2.7. In allow, it is an address only. In deny, it is
// an address and also a value of the key.
func TestEntriesThatLookLikeAddresses(t *testing.T) {
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: a, key: '{host}', limit: 3/60s, deny: [192.0.2.7], allow: [192.0.2.8]}]\n", behind(t, nil).URL))
	require.Equal(t, 403, p.get(t, "/", "Host", "192.0.2.7").StatusCode)
	require.Equal(t, "3", p.get(t, "/", "Host", "192.0.2.8").Header.Get("X-RateLimit-MaxRequests"))
}

// TestMatchOfAuthorization checks that a match of the Authorization header applies to all spellings of the same
// credentials.
func TestMatchOfAuthorization(t *testing.T) {
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: a, match: {headers: {authorization: 'Basic QQ=='}}, limit: 3/60s}]\n", behind(t, nil).URL))
	for _, spelled := range []string{"Basic QQ==", "basic  QQ==", "BASIC\tQQ=="} {
		require.Equal(t, "3", p.get(t, "/", "Authorization", spelled).Header.Get("X-RateLimit-MaxRequests"), spelled)
	}
	require.Empty(t, p.get(t, "/", "Authorization", "Basic qq==").Header.Get("X-RateLimit-MaxRequests"))
}

// TestTierOfNAT64Address checks that a tier for an IPv4 address also applies to the IPv6 address into which NAT64
// translates it.
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
