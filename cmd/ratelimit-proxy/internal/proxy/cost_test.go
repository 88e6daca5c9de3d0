package proxy

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
)

type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// TestNoRuleCostsNothing checks that a request that matches no rule makes no store call and no allocation for limits.
func TestNoRuleCostsNothing(t *testing.T) {
	allocs := func(yaml string) float64 {
		p, err := New(parse(t, "upstreams: {main: {url: 'http://127.0.0.1:1'}}\nroutes: [{upstream: main, match: {paths: [/nowhere]}}]\n%s\n", yaml), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		defer p.Close()
		r := httptest.NewRequest("GET", "/", nil)
		w := &discard{header: http.Header{}}
		return testing.AllocsPerRun(100, func() { clear(w.header); p.ServeHTTP(w, r) })
	}
	if !testenv.Racing { // the race detector drops values from pools, so there are more allocations
		require.Equal(t, allocs(""), allocs("rules: [{name: limit, limit: 1/h, match: {paths: [/x, '/y/**'], methods: [GET]}}]"))
	}
	begin := time.Now()
	p := run(t, parse(t, "redis: 'redis://127.0.0.1:1'\nupstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 1/h, match: {paths: [/x]}}]\n", behind(t, nil).URL))
	require.Equal(t, 200, p.get(t, "/").StatusCode, "there is no Redis, and it isn't asked")
	require.Less(t, time.Since(begin), 10*time.Second)
}
