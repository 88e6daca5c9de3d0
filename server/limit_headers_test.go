package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/server"
)

// TestHiddenLimit checks over HTTP that the responses of a login do not reveal its limit, and that a denied client still
// learns when to come back.
func TestHiddenLimit(t *testing.T) {
	login := policy(t, "login")
	login.Rules = append(login.Rules, ratelimit.PerDay(50))
	login.Headers = ratelimit.HeadersNone
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{login}})
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { return nil }, server.Require(login))
	store, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	for name, h := range map[string]http.Handler{
		"server":     srv,
		"middleware": eager(t, store, login)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})),
	} {
		t.Run(name, func(t *testing.T) {
			at := httptest.NewServer(h)
			defer at.Close()
			get := func() answer {
				res, err := request(t, at.Client(), "GET", at.URL)
				require.NoError(t, err)
				for field := range maps.Keys(res.Header) {
					require.NotContains(t, strings.ToLower(field), "ratelimit")
				}
				return res
			}
			for range 3 {
				require.Equal(t, http.StatusOK, get().StatusCode)
			}
			res := get()
			require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
			require.NotEmpty(t, res.Header.Get("Retry-After"))
			require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
			var members map[string]any
			require.NoError(t, json.Unmarshal([]byte(res.body), &members))
			require.Equal(t, []string{"detail", "status", "title", "type"}, slices.Sorted(maps.Keys(members)))
		})
	}
}
