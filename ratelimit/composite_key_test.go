package ratelimit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestByPath(t *testing.T) {
	ask := func(path string) (got string) {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /items/{id}", func(_ http.ResponseWriter, r *http.Request) {
			var err error
			got, err = ByPath()(t.Context(), r)
			require.NoError(t, err)
		})
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		return got
	}
	require.Equal(t, "GET /items/{id}", ask("/items/1"))
	require.Equal(t, "GET /items/{id}", ask("/items/2?x=1"))

	for path, want := range map[string]string{"/a/b": "/a/b", "/a/": "/a", "//a/./b/../c": "/a/c", "/%61?q": "/a", "/": "/"} {
		r := httptest.NewRequest("GET", path, nil)
		got, err := ByPath()(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, want, got, path)
	}
	_, err := ByPath()(t.Context(), &http.Request{})
	require.ErrorIs(t, err, ErrNoKey)
}

// fixed returns a key function that always returns key and err.
func fixed(key string, err error) KeyFunc {
	return func(context.Context, *http.Request) (string, error) { return key, err }
}

func TestByAll(t *testing.T) {
	r := httptest.NewRequest("GET", "/x", nil)
	got, err := ByAll(ByIP(), ByPath())(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "9:192.0.2.1,2:/x,", got)

	seen := map[string]bool{}
	for _, parts := range [][]string{{"a", "b"}, {"a,1:b"}, {"a", "b", "c"}, {"ab"}, {"a,", "b"}, {"a", ",b"}, {"1:a,", "b"}, {"b", "a"}} {
		var keys []KeyFunc
		for _, p := range parts {
			keys = append(keys, fixed(p, nil))
		}
		got, err := ByAll(keys...)(t.Context(), r)
		require.NoError(t, err)
		require.False(t, seen[got], "%q", parts)
		seen[got] = true
	}

	broken := errors.New("broken")
	_, err = ByAll(fixed("a", nil), fixed("", nil))(t.Context(), r)
	require.ErrorIs(t, err, ErrNoKey)
	_, err = ByAll(fixed("a", nil), fixed("b", broken))(t.Context(), r)
	require.ErrorIs(t, err, broken)
	require.Panics(t, func() { ByAll() })
	require.Panics(t, func() { ByAll(ByIP(), nil) })
}

func TestFirstOf(t *testing.T) {
	broken := errors.New("broken")
	missing := fixed("", errors.Join(ErrNoKey, errors.New("why")))
	for _, tt := range []struct {
		keys []KeyFunc
		want string
		err  error
	}{
		{[]KeyFunc{fixed("a", nil), fixed("b", nil)}, "0:a", nil},
		{[]KeyFunc{missing, fixed("", nil), fixed("a", nil)}, "2:a", nil},
		{[]KeyFunc{missing, fixed("b", broken), fixed("a", nil)}, "", broken},
		{[]KeyFunc{missing, fixed("", nil)}, "", ErrNoKey},
	} {
		got, err := FirstOf(tt.keys...)(t.Context(), nil)
		require.Equal(t, tt.want, got)
		require.ErrorIs(t, err, tt.err)
	}
	require.Panics(t, func() { FirstOf() })
	require.Panics(t, func() { FirstOf(nil) })
}
