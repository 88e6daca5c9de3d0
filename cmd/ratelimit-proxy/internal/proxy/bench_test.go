package proxy

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
)

// BenchmarkProxy compares requests over loopback through a bare ReverseProxy and through
// ours, with the same transport; allocations are those of all three ends.
func BenchmarkProxy(b *testing.B) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer up.Close()
	target, err := url.Parse(up.URL)
	require.NoError(b, err)
	proxy := func(yaml string) *Proxy {
		p, err := New(parse(b, "upstreams: {main: {url: %q}}\n%s\n", up.URL, yaml), slog.New(slog.DiscardHandler))
		require.NoError(b, err)
		b.Cleanup(func() { _ = p.Close() })
		return p
	}
	unlimited := proxy("")
	transport := unlimited.current.Load().upstreams["main"].transport
	denied := proxy("rules: [{name: limit, limit: 1/h}]")
	for _, c := range []struct {
		name string
		h    http.Handler
		want int
	}{
		{"bare", bare(target, transport), 200},
		{"no-rule", unlimited, 200},
		{"limit", proxy("rules: [{name: limit, limit: 1000000000/h}]"), 200},
		{"denied", denied, 429},
	} {
		b.Run(c.name, func(b *testing.B) {
			ts := httptest.NewServer(c.h)
			defer ts.Close()
			client := newClient(b)
			req, err := http.NewRequest("GET", ts.URL, nil)
			require.NoError(b, err)
			ask := func() int {
				res, err := client.Do(req)
				require.NoError(b, err)
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				return res.StatusCode
			}
			ask()
			b.ReportAllocs()
			for b.Loop() {
				require.Equal(b, c.want, ask())
			}
		})
	}
}

// bare returns a reverse proxy of the standard library.
func bare(target *url.URL, t *http.Transport) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:   func(pr *httputil.ProxyRequest) { pr.SetURL(target); pr.SetXForwarded() },
		Transport: t, BufferPool: buffers,
	}
}

// canned is an upstream without a connection.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: 2,
		Header: http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"2"}, "Date": {"Sun, 21 Nov 2010 12:00:00 GMT"}},
		Body:   io.NopCloser(strings.NewReader("ok")),
	}, nil
}

// BenchmarkForward is what a request costs without the connections on both sides.
func BenchmarkForward(b *testing.B) {
	target, err := url.Parse("http://127.0.0.1:1")
	require.NoError(b, err)
	proxy := func(yaml string) http.Handler {
		p, err := New(parse(b, "upstreams: {main: {url: 'http://127.0.0.1:1'}}\n%s\n", yaml), slog.New(slog.DiscardHandler))
		require.NoError(b, err)
		b.Cleanup(func() { _ = p.Close() })
		p.current.Load().upstreams["main"].transport.RegisterProtocol("http", canned{})
		return p
	}
	transport := &http.Transport{}
	transport.RegisterProtocol("http", canned{})
	for _, c := range []struct {
		name string
		h    http.Handler
	}{
		{"bare", bare(target, transport)},
		{"no-rule", proxy("")},
		{"limit", proxy("rules: [{name: limit, limit: 1000000000/h}]")},
		{"limit-without-legacy-headers", proxy("headers: {legacy: false}\nrules: [{name: limit, limit: 1000000000/h}]")},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := &discard{header: http.Header{}}
			ctx, cancel := context.WithCancel(context.WithValue(b.Context(), http.ServerContextKey, &http.Server{WriteTimeout: 2 * time.Minute}))
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
			r.Header.Set("Authorization", "Bearer 0123456789")
			r.Header.Set("User-Agent", "x")
			b.ReportAllocs()
			for b.Loop() {
				w.header = http.Header{}
				c.h.ServeHTTP(w, r)
				if w.status != 200 {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// BenchmarkDecision is what a limit in memory adds, without connections.
func BenchmarkDecision(b *testing.B) {
	p, err := New(parse(b, "upstreams: {main: {url: 'http://127.0.0.1:1'}}\nrules: [{name: limit, limit: 1/h}]\n"), slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	defer p.Close()
	r := httptest.NewRequest("GET", "/", nil)
	p.ServeHTTP(httptest.NewRecorder(), r)
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		p.ServeHTTP(w, r)
	}
	require.Equal(b, 429, w.status)
}

type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// A request that no rule matches costs no call of the store, and nothing else for limits.
func TestNoRuleCostsNothing(t *testing.T) {
	allocs := func(yaml string) float64 {
		p, err := New(parse(t, "upstreams: {main: {url: 'http://127.0.0.1:1'}}\nroutes: [{upstream: main, match: {paths: [/nowhere]}}]\n%s\n", yaml), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		defer p.Close()
		r := httptest.NewRequest("GET", "/", nil)
		w := &discard{header: http.Header{}}
		return testing.AllocsPerRun(100, func() { clear(w.header); p.ServeHTTP(w, r) })
	}
	if !testenv.Racing { // the race detector drops pooled values
		require.Equal(t, allocs(""), allocs("rules: [{name: limit, limit: 1/h, match: {paths: [/x, '/y/**'], methods: [GET]}}]"))
	}
	begin := time.Now()
	p := run(t, parse(t, "redis: 'redis://127.0.0.1:1'\nupstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 1/h, match: {paths: [/x]}}]\n", behind(t, nil).URL))
	require.Equal(t, 200, p.get(t, "/").StatusCode, "there is no Redis, and it isn't asked")
	require.Less(t, time.Since(begin), 10*time.Second)
}
