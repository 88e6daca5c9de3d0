package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

func TestDenialCountIsBounded(t *testing.T) {
	b, c := newDenialStreaks(), newClock()
	require.EqualValues(t, 1, b.increment("first", time.Hour, c.Now()))
	require.EqualValues(t, 2, b.increment("first", time.Hour, c.Now()))
	for i := range 100_000 {
		b.increment(fmt.Sprint(i), time.Minute, c.Now())
	}
	require.EqualValues(t, maxDenialKeys, b.size())
	require.Len(t, b.keys, maxDenialKeys)
	last := fmt.Sprint(99_999)
	require.EqualValues(t, 2, b.increment(last, time.Hour, c.Now()))
	c.Advance(time.Hour + 1)
	require.Zero(t, b.denialsInARow(last, c.Now()))
	require.EqualValues(t, 1, b.increment(last, time.Hour, c.Now()))
	b.reset(last)
	b.reset(last)
	require.Zero(t, b.denialsInARow(last, c.Now()))
	require.EqualValues(t, maxDenialKeys-1, b.size())
}

// requestOf returns a request with key as its Authorization header.
func requestOf(key any) *http.Request {
	r := httptest.NewRequest("GET", "/x", nil)
	r.Header.Set("Authorization", fmt.Sprint(key))
	return r
}

// counting starts a proxy that allows each key one request an hour, with size as memory.max_bytes. The returned
// function charges a request and returns the response's status, without an upstream.
func counting(t *testing.T, size string) (*running, func(*http.Request) int) {
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
memory: {max_bytes: %s}
rules: [{name: limit, limit: 1/h}]
`, behind(t, nil).URL, size))
	g := p.current.Load()
	handler := g.srv.WrapFunc(func(w http.ResponseWriter, req *server.Request) error {
		f := forwarding{p: p.Proxy, g: g, w: w, req: req}
		return f.chargeRules(req.Request, g.rules)
	})
	return p, func(r *http.Request) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the second time collects pooled objects
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemoryOfManyKeys sends requests with very many different keys. Each key is allowed once and then denied. The
// memory must stay within the bounds for counters and for denial counts.
func TestMemoryOfManyKeys(t *testing.T) {
	const bound = 1 << 20
	p, answer := counting(t, "1MiB")
	keys := testenv.Count(40_000, 400_000) // more keys than there is room for counters
	empty := heap()
	for i := range 2 {
		for key := range keys {
			r := requestOf(fmt.Sprint(i, " ", key))
			require.Equal(t, 200, answer(r))
			require.Equal(t, 429, answer(r))
		}
		// There is room for the counters, and for 16,384 denial counts in a map, which takes up to 2 MiB.
		require.Less(t, heap()-empty, int64(bound+(2<<20)), "of %d keys %d times", keys, i+1)
	}
	require.LessOrEqual(t, p.denials.size(), int64(maxDenialKeys))
	require.Less(t, strings.Count(p.metrics(t, "ratelimit_proxy"), "\n"), 60, "labels are no keys")
	runtime.KeepAlive(p)
}

// TestMemoryLimitIsUsed checks that counters are evicted only when max_bytes is reached.
func TestMemoryLimitIsUsed(t *testing.T) {
	const keys = 150_000
	s, err := (&Proxy{}).openStore(&config.Config{Memory: config.Memory{MaxBytes: 16 << 20}}, nil)
	require.NoError(t, err)
	rule := ratelimit.FixedWindow(1, time.Hour)
	for _, want := range []bool{true, false} {
		for i := range keys {
			res, err := s.base.Do(t.Context(), []ratelimit.Op{{Kind: ratelimit.Take, Rule: rule, Key: fmt.Sprint(i), N: 1}})
			require.NoError(t, err)
			require.Equal(t, want, res[0].Allowed, "key %d", i)
		}
	}
}
