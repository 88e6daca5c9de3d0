package inspect

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// get requests a path of the page with the token, after change has changed the request.
func get(in *Inspector, path string, change func(r *http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1:6060", "127.0.0.1:50000"
	r.Header.Set("Authorization", "Bearer "+in.Token())
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	in.ServeHTTP(w, r)
	return w
}

func TestOnlyKnownHostsAndLoopbackClients(t *testing.T) {
	in := newInspector(t, Options{Hosts: []string{"ops.example"}})
	for host, status := range map[string]int{
		"127.0.0.1:6060": 200, "localhost": 200, "LOCALHOST:1": 200, "[::1]:6060": 200, "[::1]": 200, "ops.example:6060": 200,
		"rebound.example:6060": 403, "127.0.0.1.example": 403, "localhost.example": 403, "": 403, "192.0.2.1": 403, "[": 403,
	} {
		for _, path := range []string{"/", "/snapshot.json"} {
			require.Equal(t, status, get(in, path, func(r *http.Request) { r.Host = host }).Code, host)
		}
	}
	remote := func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1234" }
	require.Equal(t, 403, get(in, "/", remote).Code)
	open := newInspector(t, Options{InsecureAllowRemote: true})
	require.Equal(t, 200, get(open, "/", remote).Code)
	require.Equal(t, 403, get(open, "/", func(r *http.Request) { r.Host = "rebound.example" }).Code, "the host is checked all the same")
}

func TestDataNeedsTheToken(t *testing.T) {
	in := newInspector(t, Options{})
	for _, path := range []string{"/snapshot.json", "/request.json?id=1", "//snapshot.json", "/x/../snapshot.json"} {
		for _, auth := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic " + in.Token(), in.Token(), "Bearer " + in.Token() + "x"} {
			w := get(in, path, func(r *http.Request) { r.Header.Set("Authorization", auth) })
			require.Equal(t, 401, w.Code, "%s %q", path, auth)
			require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
		}
		require.NotEqual(t, 401, get(in, path, nil).Code)
		w := get(in, path+"?token="+in.Token(), func(r *http.Request) { r.Header.Del("Authorization") })
		require.Equal(t, 401, w.Code, "a token in a URL would end up in logs")
	}
	for _, path := range []string{"/", "/app.js", "/app.css", "/icon.svg"} {
		w := get(in, path, func(r *http.Request) { r.Header.Del("Authorization") })
		require.Equal(t, 200, w.Code, "%s has no data", path)
		require.NotContains(t, w.Body.String(), in.Token())
	}
	require.Equal(t, 404, get(in, "/page/app.js", nil).Code)
	require.Equal(t, 404, get(in, "/doc.go", nil).Code)
	require.Equal(t, 405, get(in, "/", func(r *http.Request) { r.Method = "POST" }).Code)
}

func TestSecurityHeaders(t *testing.T) {
	in := newInspector(t, Options{})
	for _, path := range []string{"/", "/app.js", "/snapshot.json"} {
		h := get(in, path, nil).Header()
		require.Equal(t, policy, h.Get("Content-Security-Policy"))
		require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "no-store", h.Get("Cache-Control"))
	}
}

// The policy forbids inline scripts and styles. The script does not build markup from strings.
func TestPageHasNothingInline(t *testing.T) {
	in := newInspector(t, Options{})
	html := get(in, "/", nil).Body.String()
	require.NotRegexp(t, regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script>|javascript:|https?://`), html)
	js := get(in, "/app.js", nil).Body.String()
	for _, sink := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser", "srcdoc", "setHTML"} {
		require.NotContains(t, js, sink)
	}
}

func TestHostileTextsAreData(t *testing.T) {
	const hostile = "</script><script>alert(1)</script>\x00\xff\u2028"
	_, in, ask := observed(t, Options{})
	finish(in, "GET /"+hostile, 500, time.Millisecond)
	ask("/broken")
	for _, path := range []string{"/snapshot.json", "/request.json?id=1", "/request.json?id=2"} {
		w := get(in, path, nil)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.True(t, json.Valid(w.Body.Bytes()))
		require.NotContains(t, w.Body.String(), "<", "JSON is safe even as markup")
	}
	require.Contains(t, get(in, "/request.json?id=2", nil).Body.String(), "onerror=alert(1)")
}

func TestSnapshotShowsNoKeyAndNoValue(t *testing.T) {
	_, in, ask := observed(t, Options{})
	ask("/limited")
	ask("/user/private-id?token=private")
	all := get(in, "/snapshot.json", nil).Body.String() + get(in, "/request.json?id=1", nil).Body.String() + get(in, "/request.json?id=2", nil).Body.String()
	require.Contains(t, all, "pages.60s")
	for _, private := range []string{"192.0.2.1", "private", "secret-account", "/user/p"} {
		require.NotContains(t, all, private)
	}
}

func TestFilters(t *testing.T) {
	_, in, ask := observed(t, Options{})
	for _, path := range []string{"/limited", "/limited", "/limited", "/broken", "/user/1", "/elsewhere"} {
		ask(path)
	}
	for query, n := range map[string]int{
		"": 6, "route=GET+/limited": 3, "route=GET+/limited&status=4": 1, "status=4": 2, "status=5": 1, "status=9": 6, "status=x": 6,
		"kind=denied": 1, "kind=failed": 1, "kind=slow": 0, "kind=unknown": 6, "route=GET+/nothing": 0, "kind=failed&status=2": 0,
	} {
		var s snapshot
		require.NoError(t, json.Unmarshal(get(in, "/snapshot.json?"+query, nil).Body.Bytes(), &s))
		require.Len(t, s.Requests, n, query)
		require.Len(t, s.Routes, 4, "filters are for requests only")
	}
}

func TestListen(t *testing.T) {
	in := newInspector(t, Options{})
	for _, addr := range []string{":0", "0.0.0.0:0", "192.0.2.1:0", "[::]:0", "example.com:80"} {
		_, err := Listen(t.Context(), addr, in)
		require.ErrorContains(t, err, "not a loopback address", addr)
	}
	page, err := Listen(t.Context(), "127.0.0.1:0", in)
	require.NoError(t, err)
	url, token, _ := strings.Cut(page.URL, "#token=")
	require.Equal(t, in.Token(), token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)
	require.NoError(t, page.Close())
	_, err = client.Get(url)
	require.Error(t, err)
}
