package inspect

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// searchServer is like the quickstart's /search: parameters, and a limit that is never reached.
func searchServer(tb testing.TB, observers ...server.Observer) http.Handler {
	srv, err := server.New(server.Options{
		Observers:  observers,
		RateLimits: []*ratelimit.Policy{ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(1<<40))},
	})
	require.NoError(tb, err)
	srv.HandleFunc("GET /search", func(w http.ResponseWriter, req *server.Request) error {
		q, err := req.Params().Query().String("q")
		if err != nil {
			return err
		}
		if res, err := req.RateLimit().Take(); err != nil || !res.Allowed {
			return fmt.Errorf("denied: %w", err)
		}
		_, err = fmt.Fprintln(w, q)
		return err
	})
	return srv
}

type nullWriter struct{ h http.Header }

func (w nullWriter) Header() http.Header         { return w.h }
func (w nullWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w nullWriter) WriteHeader(int)             {}

func BenchmarkSearch(b *testing.B) {
	for _, bb := range []struct {
		name      string
		observers []server.Observer
	}{{"observer=nil", nil}, {"observer=inspector", []server.Observer{newInspector(b, Options{})}}} {
		b.Run(bb.name, func(b *testing.B) {
			h := searchServer(b, bb.observers...)
			w, r := nullWriter{http.Header{}}, httptest.NewRequest("GET", "/search?q=go", nil)
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkLoopback sends each of two servers a request in turn, over one connection each, and
// reports how much longer the one with the inspector takes.
func BenchmarkLoopback(b *testing.B) {
	const round = 200
	var urls [2]string
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}}
	defer client.CloseIdleConnections()
	for i, observers := range [][]server.Observer{nil, {newInspector(b, Options{})}} {
		ts := httptest.NewServer(searchServer(b, observers...))
		defer ts.Close()
		urls[i] = ts.URL + "/search?q=go"
	}
	var best [2]time.Duration
	for n := 0; b.Loop(); n++ {
		for i := range urls {
			i = (i + n) % 2 // neither is always first
			began := time.Now()
			for range round {
				res, err := client.Get(urls[i])
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body) // so that the connection is used again
				if err := res.Body.Close(); err != nil {
					b.Fatal(err)
				}
			}
			if took := time.Since(began) / round; best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	b.ReportMetric(float64(best[0].Nanoseconds()), "nil-ns/req")
	b.ReportMetric(float64(best[1].Nanoseconds()), "inspector-ns/req")
	b.ReportMetric(100*(float64(best[1])/float64(best[0])-1), "%more")
}

// A request that is counted and not recorded allocates only what the server keeps for observers.
func TestAttachedAllocations(t *testing.T) {
	allocs := func(observers ...server.Observer) float64 {
		h := searchServer(t, observers...)
		w, r := nullWriter{http.Header{}}, httptest.NewRequest("GET", "/search?q=go", nil)
		return testing.AllocsPerRun(2000, func() {
			clear(w.h)
			h.ServeHTTP(w, r)
		})
	}
	none, attached := allocs(), allocs(newInspector(t, Options{PerSecond: 1, Slow: time.Hour}))
	t.Logf("%v without, %v with the inspector", none, attached)
	require.LessOrEqual(t, attached-none, 4.0)
}
