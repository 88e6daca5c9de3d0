package ratelimit

import (
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
	key, err := IPOptions{IPv6Bits: 56}.Key()
	require.NoError(t, err)
	got, err := key(t.Context(), &http.Request{RemoteAddr: "[2001:db8:1:2ff::1]:80"})
	require.NoError(t, err)
	require.Equal(t, "2001:db8:1:200::/56", got)
}

func FuzzByIP(f *testing.F) {
	for _, s := range []string{"192.0.2.1:1", "[::ffff:1.2.3.4%z]:1", "[64:ff9b::1]:0", "@", "[fe80::%]:1"} {
		f.Add(s)
	}
	key := ByIP()
	f.Fuzz(func(t *testing.T, peer string) {
		got, err := key(t.Context(), &http.Request{RemoteAddr: peer})
		if err != nil {
			require.ErrorIs(t, err, ErrNoKey)
			require.Empty(t, got)
			return
		}
		if p, err := netip.ParsePrefix(got); err == nil {
			require.Equal(t, 64, p.Bits())
			require.Equal(t, p.Masked(), p)
			return
		}
		require.True(t, netip.MustParseAddr(got).Is4())
	})
}

func TestByHeader(t *testing.T) {
	ask := func(lines ...string) (string, error) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Api-Key"] = lines
		return ByHeader("x-api-key")(t.Context(), r)
	}
	for _, none := range [][]string{nil, {""}, {"", ""}} {
		got, err := ask(none...)
		require.ErrorIs(t, err, ErrNoKey)
		require.Empty(t, got)
	}
	seen := map[string]bool{}
	for _, lines := range [][]string{{"secret"}, {"secret2"}, {"a", "b"}, {"ab"}, {"a,b"}, {"a", "", "b"}, {strings.Repeat("x", 1<<20)}} {
		got, err := ask(lines...)
		require.NoError(t, err)
		require.False(t, seen[got], "%v", lines)
		seen[got] = true
		require.Len(t, got, len("sha256-")+22)
		require.NotContains(t, got, lines[0][:min(6, len(lines[0]))]+"e")
		again, err := ask(lines...)
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

func TestBounded(t *testing.T) {
	short, long := strings.Repeat("a", 128), strings.Repeat("a", 129)
	require.Equal(t, short, bounded(short))
	require.Regexp(t, "^sha256-", bounded(long))
	require.NotEqual(t, bounded(long), bounded(long+"a"))
}
