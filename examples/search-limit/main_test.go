package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/servertest"
)

const (
	browser = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"
	program = "*/*"
)

func get(t *testing.T, srv *server.Server, path, accept string) *servertest.Response {
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Accept", accept)
	return servertest.Do(t, srv, r)
}

func TestSixthSearchIsAskedToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := newServer()
		require.NoError(t, err)
		for range 5 {
			res := get(t, srv, "/search?q=redis", browser)
			require.Equal(t, http.StatusOK, res.Code)
			require.Contains(t, res.Body.String(), "<li>Redis in Action</li>")
		}
		res := get(t, srv, "/search?q=%3Cb%3E", browser)
		require.Equal(t, http.StatusTooManyRequests, res.Code)
		require.Equal(t, "text/html; charset=utf-8", res.Header().Get("Content-Type"))
		require.Equal(t, "63", res.Header().Get("Retry-After"), "a minute, and up to one bucket of 3 s")
		require.Contains(t, res.Body.String(), "in <strong>63</strong> s")
		require.Contains(t, res.Body.String(), "“&lt;b&gt;”", "escaped")
		require.Contains(t, res.Body.String(), `href="/search?q=%3cb%3e"`, "the search is not lost")

		res = get(t, srv, "/search?q=go", program)
		require.Equal(t, http.StatusTooManyRequests, res.Code)
		require.Equal(t, "application/problem+json", res.Header().Get("Content-Type"))

		<-time.After(63 * time.Second) // takes no time, since the test runs in a synctest bubble
		require.Equal(t, http.StatusOK, get(t, srv, "/search?q=go", browser).Code)
	})
}

func TestOnlySearchesAreLimited(t *testing.T) {
	srv, err := newServer()
	require.NoError(t, err)
	for range 10 {
		res := get(t, srv, "/", browser)
		require.Equal(t, http.StatusOK, res.Code)
		res.RequireResolved(t)
		require.Equal(t, http.StatusBadRequest, get(t, srv, "/search", browser).Code, "a search without words costs nothing")
	}
	get(t, srv, "/search?q=go", browser).RequireResolved(t, "ratelimit.search.key", "ratelimit.search.take")
}
