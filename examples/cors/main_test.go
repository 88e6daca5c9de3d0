package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const app = "https://app.x.com"

// send sends a request as a browser does for a page of this origin.
func send(t *testing.T, method, path, origin string, header map[string]string) *http.Response {
	srv, err := newServer(app)
	require.NoError(t, err)
	r := httptest.NewRequest(method, "https://api.x.com"+path, nil)
	r.Header.Set("Origin", origin)
	r.Header.Set("Sec-Fetch-Site", "same-site")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, r)
	return rec.Result()
}

func TestCORS(t *testing.T) {
	preflight := map[string]string{"Access-Control-Request-Method": "DELETE", "Access-Control-Request-Headers": "content-type"}
	res := send(t, "OPTIONS", "/visits", app, preflight)
	require.Equal(t, http.StatusNoContent, res.StatusCode)
	require.Equal(t, app, res.Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "true", res.Header.Get("Access-Control-Allow-Credentials"))
	require.Equal(t, "DELETE", res.Header.Get("Access-Control-Allow-Methods"))

	res = send(t, "POST", "/visits", app, nil)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, app, res.Header.Get("Access-Control-Allow-Origin"))
	require.Len(t, res.Cookies(), 1)
	require.Contains(t, strings.Join(res.Header.Values("Vary"), ","), "Origin")

	require.Contains(t, res.Header.Get("Access-Control-Expose-Headers"), "Retry-After")

	res = send(t, "POST", "/nowhere", app, nil)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	require.Equal(t, app, res.Header.Get("Access-Control-Allow-Origin"), "the page can read errors, too")

	res = send(t, "OPTIONS", "/visits", "https://evil.example", preflight)
	require.Empty(t, res.Header.Get("Access-Control-Allow-Origin"))
	res = send(t, "POST", "/visits", "https://evil.example", nil)
	require.Equal(t, http.StatusForbidden, res.StatusCode)
	require.Empty(t, res.Header.Get("Access-Control-Allow-Origin"))
}
