package ratelimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestByHeader(t *testing.T) {
	ask := func(lines ...string) (string, error) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Api-Key"] = lines
		return ByHeader("x-api-key")(t.Context(), r)
	}
	for _, none := range [][]string{nil, {""}, {"", ""}, {"secret", "more"}, {"secret", "secret"}} {
		got, err := ask(none...)
		require.ErrorIs(t, err, ErrNoKey, "%q", none)
		require.Empty(t, got)
		require.NotContains(t, err.Error(), "secret")
	}
	seen := map[string]bool{}
	for _, value := range []string{"secret", "secret2", "Secret", "a b", "a,b", strings.Repeat("x", 1<<20)} {
		got, err := ask(value)
		require.NoError(t, err)
		require.False(t, seen[got], "%v", value)
		seen[got] = true
		require.Len(t, got, len("sha256-")+22)
		require.NotContains(t, got, value[:min(6, len(value))]+"e")
		again, err := ask(value)
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

// TestByHeaderAuthorization checks that different spellings of the same credentials have the same key.
func TestByHeaderAuthorization(t *testing.T) {
	ask := func(name, value string) string {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set(name, value)
		got, err := ByHeader(name)(t.Context(), r)
		require.NoError(t, err)
		return got
	}
	want := ask("Authorization", "Bearer abc")
	require.Equal(t, want, ask("Authorization", "bEARER abc"))
	require.Equal(t, want, ask("authorization", "BEARER   abc"))
	require.Equal(t, want, ask("Authorization", "Bearer\tabc"))
	require.Equal(t, want, ask("Authorization", " Bearer \t abc "), "as over HTTP/2")
	require.Equal(t, ask("X-Key", "a"), ask("X-Key", " a\t"))
	require.NotEqual(t, want, ask("Authorization", "Bearer ABC"))
	require.NotEqual(t, want, ask("Authorization", "Basic abc"))
	require.NotEqual(t, ask("Authorization", "token-\xfe"), ask("Authorization", "token-\xff"))
	require.NotEqual(t, ask("X-Key", "A b"), ask("X-Key", "a b"))
	require.NotEqual(t, ask("X-Key", "a"), ask("X-Other", "a"))
}

func TestByCookie(t *testing.T) {
	ask := func(cookies string) (string, error) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Cookie", cookies)
		return ByCookie("id")(t.Context(), r)
	}
	for _, none := range []string{"", "id=", "other=1", "ID=1", "id"} {
		_, err := ask(none)
		require.ErrorIs(t, err, ErrNoKey, none)
	}
	want, err := ask("id=secret")
	require.NoError(t, err)
	require.NotContains(t, want, "secret")
	got, err := ask("a=b; id=secret; id=other")
	require.NoError(t, err)
	require.Equal(t, want, got, "the first, as others read it")
	got, err = ask("id=other; id=secret")
	require.NoError(t, err)
	require.NotEqual(t, want, got)

	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("id", "secret")
	header, err := ByHeader("id")(t.Context(), r)
	require.NoError(t, err)
	require.NotEqual(t, want, header, "a cookie is not the header of its name")
}

// TestSubjectsDoNotCollide checks that different policies have different keys, and that keys of Fallback differ from keys
// of Key.
func TestSubjectsDoNotCollide(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "a-a"} {
		for _, key := range []string{"k", ":k", "~k", "a:k", "\n", strings.Repeat("k", 129)} {
			for _, p := range []*Policy{
				{Name: name, Key: fixed(key, nil)},
				{Name: name, Key: fixed("", nil), Fallback: fixed(key, nil)},
			} {
				subject, err := p.subject(t.Context(), nil)
				require.NoError(t, err)
				require.False(t, seen[subject], subject)
				seen[subject] = true
			}
		}
	}
}

// TestKeysDoNotCollideWithHashes checks that no other key has the same form in the store as the hash of a long key.
func TestKeysDoNotCollideWithHashes(t *testing.T) {
	ask := func(key string) string {
		p := Policy{Name: "p", Key: fixed(key, nil)}
		subject, err := p.subject(t.Context(), nil)
		require.NoError(t, err)
		require.LessOrEqual(t, len(subject), MaxKeyLen)
		return strings.TrimPrefix(subject, "p:")
	}
	short, long := strings.Repeat("a", 128), strings.Repeat("a", 129)
	require.Equal(t, short, ask(short))
	require.Regexp(t, "^long-sha256-.{22}$", ask(long))
	seen := map[string]string{}
	for _, key := range []string{
		short, long, long + "a", ask(long), ask(ask(long)), ask(ask(ask(long))), hashParts(long),
		"==", "=", "k", "=k", "long-", "long-k", "=long-k",
	} {
		other, twice := seen[ask(key)]
		require.False(t, twice, "%q and %q are both %q", key, other, ask(key))
		seen[ask(key)] = key
	}
}

// TestNameIsNotAnAddress checks that a key that looks like an address is escaped, unless ByIP or IPOptions has made it.
func TestNameIsNotAnAddress(t *testing.T) {
	byIP := ByIP()
	wide, err := IPOptions{IPv6Bits: 48}.Key()
	require.NoError(t, err)
	for _, c := range []struct {
		what string
		key  KeyFunc
		from string
		want string
	}{
		{"an address", byIP, "192.0.2.1:1", "192.0.2.1"},
		{"an address of IPv6", byIP, "[2001:db8::1]:1", "2001:db8::/64"},
		{"a wider one", wide, "[2001:db8::1]:1", "2001:db8::/48"},
		{"a name", fixed("192.0.2.1", nil), "192.0.2.1:1", "=192.0.2.1"},
		{"a name like a network", fixed("2001:db8::/64", nil), "[2001:db8::1]:1", "=2001:db8::/64"},
		{"a name like a mapped address", fixed("::ffff:192.0.2.1", nil), "192.0.2.1:1", "=::ffff:192.0.2.1"},
		{"another name", fixed("192.0.2", nil), "192.0.2.1:1", "192.0.2"},
		{"an escaped name", fixed("=192.0.2.1", nil), "192.0.2.1:1", "==192.0.2.1"},
		{"a name in place of an address", func(ctx context.Context, r *http.Request) (string, error) {
			_, err := byIP(ctx, r)
			return "10.0.0.1", err
		}, "192.0.2.1:1", "=10.0.0.1"},
		{"an address found by another function", func(ctx context.Context, r *http.Request) (string, error) {
			return byIP(ctx, r)
		}, "192.0.2.1:1", "192.0.2.1"},
		{"an address and more", ByAll(byIP), "192.0.2.1:1", "9:192.0.2.1,"},
		{"the first of several", FirstOf(byIP), "192.0.2.1:1", "0:192.0.2.1"},
		{"the first of several, that reads like an address", FirstOf(byIP), "[2001:db8::1]:1", "=0:2001:db8::/64"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.from
		for _, fallback := range []bool{false, true} {
			p, by := Policy{Name: "p", Key: c.key}, ":"
			if fallback {
				p.Key, p.Fallback, by = ByHeader("X-Api-Key"), c.key, "~"
			}
			subject, err := p.subject(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, "p"+by+c.want, subject, c.what)
		}
	}
}
