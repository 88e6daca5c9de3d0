package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/server"
)

// untouched returns the same small handler on a bare mux and on a Server. The handler uses no property.
func untouched(tb testing.TB) (bare, lazy http.Handler) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fast", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	srv, err := server.New(server.Options{})
	require.NoError(tb, err)
	srv.HandleFunc("GET /fast", func(w http.ResponseWriter, req *server.Request) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	return mux, srv
}

type nullWriter struct{ h http.Header }

func (w nullWriter) Header() http.Header         { return w.h }
func (w nullWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w nullWriter) WriteHeader(int)             {}

// A request that touches no property costs two allocations: the exchange, and the copy of the http.Request.
func TestUntouchedRequestAllocatesTwice(t *testing.T) {
	bare, lazy := untouched(t)
	w, r := nullWriter{http.Header{}}, httptest.NewRequest("GET", "/fast", nil)
	allocs := func(h http.Handler) float64 {
		return testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) })
	}
	require.LessOrEqual(t, allocs(lazy)-allocs(bare), 2.0)
}

// The same holds over a connection, where net/http copies a response's header once a handler has called Header.
func TestUntouchedRequestAllocatesTwiceOverAConnection(t *testing.T) {
	if testenv.Racing {
		t.Skip("under the race detector, sync.Pool drops what net/http keeps in it at random")
	}
	bare, lazy := untouched(t)
	// Collections of garbage empty the pools of net/http. One round without them is enough.
	conns := []*roundTripper{dial(t, bare), dial(t, lazy)}
	var more float64
	for range 50 {
		var allocs [2]float64
		for i, c := range conns {
			allocs[i] = testing.AllocsPerRun(100, func() { c.do(t) })
		}
		if more = allocs[1] - allocs[0]; more <= 2 {
			return
		}
	}
	t.Errorf("%v allocations more, want 2", more)
}

func BenchmarkServeHTTP(b *testing.B) {
	bare, lazy := untouched(b)
	for _, bb := range []struct {
		name string
		h    http.Handler
	}{{"bare", bare}, {"lazyreq", lazy}} {
		b.Run(bb.name, func(b *testing.B) {
			w, r := nullWriter{http.Header{}}, httptest.NewRequest("GET", "/fast", nil)
			b.ReportAllocs()
			for b.Loop() {
				bb.h.ServeHTTP(w, r)
			}
		})
	}
}

// roundTripper sends one request at a time and does little else.
type roundTripper struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(tb testing.TB, h http.Handler) *roundTripper {
	ts := httptest.NewServer(h)
	tb.Cleanup(ts.Close)
	conn, err := net.Dial("tcp", ts.Listener.Addr().String())
	require.NoError(tb, err)
	tb.Cleanup(func() { conn.Close() })
	return &roundTripper{conn, bufio.NewReader(conn)}
}

func (rt *roundTripper) do(tb testing.TB) {
	if _, err := io.WriteString(rt.conn, "GET /fast HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		tb.Fatal(err)
	}
	status, err := rt.in.ReadSlice('\n')
	if err != nil || string(status) != "HTTP/1.1 204 No Content\r\n" {
		tb.Fatalf("%q %v", status, err)
	}
	for {
		line, err := rt.in.ReadSlice('\n')
		if err != nil {
			tb.Fatal(err)
		}
		if len(line) == 2 {
			return
		}
	}
}
