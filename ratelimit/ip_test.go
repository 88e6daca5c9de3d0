package ratelimit

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestByIP(t *testing.T) {
	for peer, want := range map[string]string{
		"192.0.2.1:1234":                     "192.0.2.1",
		"[::ffff:192.0.2.1]:1234":            "192.0.2.1",
		"[::ffff:192.0.2.2]:1234":            "192.0.2.2",
		"[2001:db8:1:2:3:4:5:6]:80":          "2001:db8:1:2::/64",
		"[2001:db8:1:2::ffff]:80":            "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":                  "fe80::/64",
		"[::1]:80":                           "::/64",
		"[64:ff9b::c000:201]:80":             "192.0.2.1",
		"[64:ff9b:1::c000:201]:80":           "64:ff9b:1::/64",
		"[::ffff:192.0.2.1%eth0]:80":         "192.0.2.1",
		"[64:ff9b::192.0.2.1%eth0]:80":       "192.0.2.1",
		"":                                   "",
		"@":                                  "",
		"192.0.2.1":                          "",
		"localhost:80":                       "",
		"/run/app.sock":                      "",
		"192.0.2.1:80, 198.51.100.7:80":      "",
		"[2001:db8:1:2::ffff]:80\r\nX: evil": "",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		got, err := ByIP()(t.Context(), r)
		require.Equal(t, want, got, peer)
		if want == "" {
			require.ErrorIs(t, err, ErrNoKey, peer)
		} else {
			require.NoError(t, err, peer)
		}
	}
}

func TestIPOptions(t *testing.T) {
	for _, bits := range []int{-1, 31, 129} {
		_, err := IPOptions{IPv6Bits: bits}.Key()
		require.ErrorContains(t, err, "IPOptions.IPv6Bits is")
	}
	ten := netip.MustParsePrefix("10.0.0.0/8")
	for want, o := range map[string]IPOptions{
		"Header is empty": {TrustedProxies: []netip.Prefix{ten}},
		"Header is empty, but TrustedProxies is set":              {TrustUnixSocket: true},
		`Header is "x-real-ip", but there are no trusted proxies`: {Header: "x-real-ip"},
		`Header is "Forwarded, X", which`:                         {Header: "Forwarded, X", TrustUnixSocket: true},
		"TrustedProxies[1] is not a prefix":                       {Header: "Forwarded", TrustedProxies: []netip.Prefix{ten, {}}},
		"TrustedProxies[0] is 0.0.0.0/0":                          {Header: "Forwarded", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}},
		"TrustedProxies[0] is ::/0":                               {Header: "Forwarded", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::/0")}},
		"TrustedProxies[0] is ::ffff:0.0.0.0/":                    {Header: "Forwarded", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::ffff:0:0/96")}},
	} {
		_, err := o.Key()
		require.ErrorContains(t, err, "IPOptions."+want)
	}
	key, err := IPOptions{IPv6Bits: 56}.Key()
	require.NoError(t, err)
	got, err := key(t.Context(), &http.Request{RemoteAddr: "[2001:db8:1:2ff::1]:80"})
	require.NoError(t, err)
	require.Equal(t, "2001:db8:1:200::/56", got)
}

// behind returns the key of a request that comes from peer and has the lines in its header. 10.0.0.0/8 and
// 2001:db8:ffff::/48 are trusted proxies.
func behind(t *testing.T, peer, header string, lines ...string) string {
	t.Helper()
	key, err := IPOptions{Header: header, TrustedProxies: []netip.Prefix{
		netip.MustParsePrefix("::ffff:10.0.0.0/104"), netip.MustParsePrefix("2001:db8:ffff::/48")}}.Key()
	require.NoError(t, err)
	r := &http.Request{RemoteAddr: peer, Header: http.Header{http.CanonicalHeaderKey(header): lines}}
	got, err := key(t.Context(), r)
	require.NoError(t, err)
	return got
}

func TestBehindProxies(t *testing.T) {
	for _, tt := range []struct {
		why, peer string
		lines     []string
		want      string
	}{
		{"a stranger's header is not read", "192.0.2.1:1", []string{"203.0.113.9"}, "192.0.2.1"},
		{"one proxy", "10.0.0.1:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a mapped peer", "[::ffff:10.0.0.1]:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"an IPv6 proxy with a zone", "[2001:db8:ffff::1%eth0]:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"the left end is the client's invention", "10.0.0.1:1", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "10.0.0.1:1", []string{"1.1.1.1, 203.0.113.9, 10.9.9.9"}, "203.0.113.9"},
		{"several lines are one list", "10.0.0.1:1", []string{"1.1.1.1", "203.0.113.9", "10.9.9.9"}, "203.0.113.9"},
		{"ports and brackets", "10.0.0.1:1", []string{"[2001:db8:1:2::3]:443"}, "2001:db8:1:2::/64"},
		{"brackets without port", "10.0.0.1:1", []string{"[2001:db8:1:2::3]"}, "2001:db8:1:2::/64"},
		{"bare IPv6", "10.0.0.1:1", []string{"2001:db8:1:2::3"}, "2001:db8:1:2::/64"},
		{"IPv4 with port", "10.0.0.1:1", []string{"203.0.113.9:51234"}, "203.0.113.9"},
		{"zone", "10.0.0.1:1", []string{"fe80::1%eth0"}, "fe80::/64"},
		{"mapped", "10.0.0.1:1", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"a mapped proxy", "10.0.0.1:1", []string{"203.0.113.9, ::ffff:10.1.1.1"}, "203.0.113.9"},
		{"NAT64", "10.0.0.1:1", []string{"64:ff9b::cb00:7109"}, "203.0.113.9"},
		{"NAT64 of a proxy's address is no proxy", "10.0.0.1:1", []string{"1.1.1.1, 64:ff9b::a00:1"}, "10.0.0.1"},
		{"empty elements", "10.0.0.1:1", []string{" , 203.0.113.9 ,,", "", ","}, "203.0.113.9"},
		{"no header", "10.0.0.1:1", nil, "10.0.0.1"},
		{"all trusted: the furthest", "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"unknown", "10.0.0.1:1", []string{"1.1.1.1, unknown"}, "10.0.0.1"},
		{"garbage: the last good one", "10.0.0.1:1", []string{"1.1.1.1, who?, 10.0.0.2"}, "10.0.0.2"},
		{"a port too high", "10.0.0.1:1", []string{"1.1.1.1:65536"}, "10.0.0.1"},
		{"an unclosed bracket", "10.0.0.1:1", []string{"[2001:db8::1"}, "10.0.0.1"},
		{"IPv4 in brackets", "10.0.0.1:1", []string{"[1.1.1.1]"}, "10.0.0.1"},
		{"a host name", "10.0.0.1:1", []string{"example.com:80"}, "10.0.0.1"},
		{"a megabyte", "10.0.0.1:1", []string{strings.Repeat("1.1.1.1,", 1<<17) + "203.0.113.9"}, "203.0.113.9"},
	} {
		for _, header := range []string{"X-Forwarded-For", "cf-connecting-ip"} {
			require.Equal(t, tt.want, behind(t, tt.peer, header, tt.lines...), tt.why)
		}
	}
}

func TestForwarded(t *testing.T) {
	for line, want := range map[string]string{
		`for=203.0.113.9`: "203.0.113.9",
		`For="203.0.113.9:80";proto=https;by=10.0.0.1`:            "203.0.113.9",
		`proto=https ; FOR="[2001:db8:1:2::3]:4711"`:              "2001:db8:1:2::/64",
		`for="[2001:db8:1:2::3]"`:                                 "2001:db8:1:2::/64",
		`for="203.0.113.9:_port"`:                                 "203.0.113.9",
		`for=1.1.1.1, for=203.0.113.9, for=10.0.0.2`:              "203.0.113.9",
		`for=203.0.113.9;host="a,b;for=1.1.1.1", for=10.0.0.2`:    "203.0.113.9",
		`for=203.0.113.9;host="a\\\",b", for=10.0.0.2`:            "203.0.113.9",
		`for=1.1.1.1, for=203.0.113.9;host="a\",b", for=10.0.0.2`: "203.0.113.9",
		`for="1.1.1.1, for=203.0.113.9`:                           "203.0.113.9", // a quote that never ends
		`for=", for="[2001:db8:1:2::3]"`:                          "2001:db8:1:2::/64",
		`for=1.1.1.1, for=unknown`:                                "10.0.0.1",
		`for=1.1.1.1, for=_hidden, for=10.0.0.2`:                  "10.0.0.2",
		`for=1.1.1.1, by=10.0.0.3;proto=http`:                     "10.0.0.1",
		`for=1.1.1.1;for=2.2.2.2`:                                 "10.0.0.1",
		`for=;for=2.2.2.2`:                                        "10.0.0.1",
		`for="203.0.113.9:_"`:                                     "10.0.0.1",
		`203.0.113.9`:                                             "10.0.0.1",
	} {
		require.Equal(t, want, behind(t, "10.0.0.1:1", "Forwarded", line), line)
	}
}

func TestUnixSocket(t *testing.T) {
	key, err := IPOptions{Header: "X-Real-IP", TrustUnixSocket: true}.Key()
	require.NoError(t, err)
	ask := func(local net.Addr, peer string, lines ...string) (string, error) {
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, local)
		return key(ctx, &http.Request{RemoteAddr: peer, Header: http.Header{"X-Real-Ip": lines}})
	}
	socket := &net.UnixAddr{Name: "/run/app.sock", Net: "unix"}
	for _, peer := range []string{"@", "", "/tmp/peer.sock"} {
		got, err := ask(socket, peer, "203.0.113.9")
		require.NoError(t, err)
		require.Equal(t, "203.0.113.9", got)
		_, err = ask(socket, peer)
		require.ErrorIs(t, err, ErrNoKey, "there is no header to count by")
		_, err = ask(socket, peer, "unknown")
		require.ErrorIs(t, err, ErrNoKey)
		_, err = ask(&net.TCPAddr{}, peer, "203.0.113.9")
		require.ErrorIs(t, err, ErrNoKey, "a peer without address that didn't come through a Unix socket")
	}
	got, err := ask(&net.TCPAddr{}, "192.0.2.1:1", "203.0.113.9")
	require.NoError(t, err)
	require.Equal(t, "192.0.2.1", got)

	_, err = ByIP()(context.WithValue(t.Context(), http.LocalAddrContextKey, socket), &http.Request{RemoteAddr: "@"})
	require.ErrorIs(t, err, ErrNoKey)
}

// FuzzBehindProxies checks that the address that a proxy appends is the key, whatever the client has sent.
func FuzzBehindProxies(f *testing.F) {
	for _, s := range []string{"", "1.1.1.1", `for="`, `for=a;"\\`, `for="\",`, "a,b,,", `,for="1.1.1.1`, "\x00", `"`, "["} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, sent string, lines bool) {
		for header, element := range map[string]string{
			"X-Forwarded-For": "203.0.113.9", "Forwarded": `for="203.0.113.9:80";proto=https`} {
			value := []string{sent + ", " + element}
			if lines {
				value = []string{sent, element}
			}
			require.Equal(t, "203.0.113.9", behind(t, "10.0.0.1:1", header, value...))
			got := behind(t, "10.0.0.1:1", header, sent) // as if the proxy appended nothing
			if p, err := netip.ParsePrefix(got); err == nil {
				require.Equal(t, 64, p.Bits())
			} else {
				require.True(t, netip.MustParseAddr(got).Is4())
			}
		}
	})
}
