package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

func TestBeyondIsBounded(t *testing.T) {
	b, c := newBeyond(), newClock()
	require.EqualValues(t, 1, b.deny("first", time.Hour, c.now()))
	require.EqualValues(t, 2, b.deny("first", time.Hour, c.now()))
	for i := range 100_000 {
		b.deny(fmt.Sprint(i), time.Minute, c.now())
	}
	require.LessOrEqual(t, b.size(), int64(len(b.shards)*beyondKeys))
	sum := 0
	for i := range b.shards {
		sum += len(b.shards[i].keys)
	}
	require.EqualValues(t, sum, b.size())
	require.EqualValues(t, 3, b.deny("first", time.Hour, c.now()), "those stay that last for longest")
	c.move(time.Hour + 1)
	require.Zero(t, b.of("first", c.now()))
	require.EqualValues(t, 1, b.deny("first", time.Hour, c.now()))
	b.allow("first")
	b.allow("first")
	require.Zero(t, b.of("first", c.now()))
	require.EqualValues(t, sum-1, b.size())
}

// So many keys that somebody makes up, each allowed once and then denied, take no more room
// in the end than at the beginning.
func TestOneHundredThousandKeys(t *testing.T) {
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
memory: {max_bytes: 4MiB}
rules: [{name: limit, limit: 1/h, match: {paths: [/x]}, last: true}]
routes: [{upstream: main, match: {paths: [/nowhere]}}]
`, behind(t, nil).URL))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil)
	g := p.current.Load()
	handler := g.srv.WrapFunc(func(w http.ResponseWriter, req *server.Request) error {
		x := exchange{p: p.Proxy, g: g, w: w, req: req}
		return x.limit(req.Request, g.rules)
	})
	denied := 0
	fill := func(n int) uint64 {
		for range n {
			r.Header.Set("Authorization", fmt.Sprint(rand.Uint64()))
			for range 2 {
				*w = *httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code == 429 {
					denied++
				}
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := fill(100_000)
	require.Equal(t, 100_000, denied)
	require.Less(t, fill(100_000), before+1<<20)
	require.Less(t, before, uint64(64<<20))
	require.LessOrEqual(t, p.beyond.size(), int64(len(p.beyond.shards)*beyondKeys))
	require.Less(t, strings.Count(p.metrics(t, "ratelimit_proxy"), "\n"), 30, "labels are no keys")
}
