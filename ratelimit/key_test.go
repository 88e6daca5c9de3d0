package ratelimit

import (
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

// One valid credential is one quota, however it is spelled.
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
	require.NotEqual(t, want, ask("Authorization", "Bearer ABC"))
	require.NotEqual(t, want, ask("Authorization", "Basic abc"))
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

func TestBounded(t *testing.T) {
	short, long := strings.Repeat("a", 128), strings.Repeat("a", 129)
	require.Equal(t, short, bounded(short))
	require.Regexp(t, "^sha256-", bounded(long))
	require.NotEqual(t, bounded(long), bounded(long+"a"))
}
