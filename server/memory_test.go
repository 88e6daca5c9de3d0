package server_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
)

// memoryLoad returns the number of clients, the number of sessions and counters that the stores can hold, and the
// minimum duration of the load. The numbers are small unless LAZYREQ_TORTURE is set.
func memoryLoad(t *testing.T) (clients, remembered int, atLeast time.Duration) {
	if testenv.IsLong() {
		return 10_000_000, 100_000, testenv.Duration(t, 0)
	}
	if testenv.Racing {
		return 8_000, 1_000, 0
	}
	return 80_000, 5_000, 0
}

// Each request comes from a different client with its own key and session. After the stores have become full, the
// server's memory no longer grows.
func TestMemoryIsFlat(t *testing.T) {
	clients, remembered, atLeast := memoryLoad(t)
	releases(t)
	sessions, err := memstore.New(memstore.Options{MaxKeys: remembered})
	require.NoError(t, err)
	counters, err := ratestore.New(ratestore.Options{MaxKeys: remembered})
	require.NoError(t, err)
	srv, logs := newServer(t, server.Options{
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, SessionStore: sessions,
		RateLimits: []*ratelimit.Policy{{
			Name: "key", Key: ratelimit.ByHeader("X-Key"), Rules: []ratelimit.Rule{ratelimit.PerHour(5)},
		}},
		RateLimitStore: counters,
	})
	srv.HandleFunc("POST /", func(w http.ResponseWriter, req *server.Request) error {
		if err := req.RateLimit().Require(); err != nil {
			return err
		}
		return req.Session().Set("name", req.Header.Get("X-Key"))
	})
	url, _ := listenItself(t, srv)
	addr := strings.TrimPrefix(url, "http://")
	var next atomic.Int64
	send := func(n int) { sendDistinct(t, addr, n, &next) }

	send(4 * remembered) // shards fill unevenly
	full, began := liveHeap(), time.Now()
	left := clients - 4*remembered
	rounds := 4
	if atLeast > 0 {
		rounds = 100
	}
	for i := 1; i <= rounds || time.Since(began) < atLeast; i++ {
		send(left / rounds)
		now := liveHeap()
		require.Less(t, now, full+full/10+1<<20, "round %d", i)
		if i%max(rounds/4, 1) == 0 {
			t.Logf("%9d clients, %6.1f MB (%.1f MB when full), %v", next.Load(), float64(now)/1e6, float64(full)/1e6, time.Since(began).Round(time.Second))
		}
	}
	require.LessOrEqual(t, sessions.Len(), remembered)
	require.Empty(t, logs.at("ERROR"))
}

// sendDistinct sends n requests with different keys on a few connections.
func sendDistinct(t *testing.T, addr string, n int, next *atomic.Int64) {
	t.Helper()
	const conns, batch = 4, 50
	concurrently(conns, func(int) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		out, in := bufio.NewWriter(conn), bufio.NewReader(conn)
		for sent := 0; sent < n/conns; sent += batch {
			for range batch {
				fmt.Fprintf(out, "POST / HTTP/1.1\r\nHost: x\r\nX-Key: %d\r\n\r\n", next.Add(1))
			}
			err := out.Flush()
			for range batch {
				err = cmp.Or(err, readOK(in))
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
}

// readOK reads a response without a body.
func readOK(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err == nil && line != "HTTP/1.1 200 OK\r\n" {
		return fmt.Errorf("%s", line)
	}
	for err == nil && line != "\r\n" {
		line, err = in.ReadString('\n')
	}
	return err
}

// idleConns returns the number of connections that one process keeps open: 2,000 under the race detector, and
// otherwise 10,000 or fewer if the process may not open so many files.
func idleConns(t *testing.T) int {
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	n := 10_000
	if testenv.Racing {
		n = 2_000
	}
	return min(n, int(limit.Cur)-500)
}

// Each idle connection costs a goroutine and a few KiB. Other clients are served meanwhile, and Shutdown closes all
// idle connections. The clients run in a separate process.
func TestThousandsOfIdleConnections(t *testing.T) {
	testhost.ServeProcess(t, openConns)
	for name, sent := range map[string]string{"before a request": "", "after a request": get} {
		t.Run(name, func(t *testing.T) {
			testhost.ServeProcess(t, openConns)
			releases(t)
			srv, l := newServer(t, server.Options{ReadHeaderTimeout: time.Minute})
			srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error { return writeText(w, "here") })
			url, c := listenItself(t, srv)
			_, err := request(t, c, "GET", url)
			require.NoError(t, err)
			n := idleConns(t)
			heap, goroutines := liveHeap(), runtime.NumGoroutine()

			clients := testhost.StartProcess(t, fmt.Sprintf("%d %s %q", n, strings.TrimPrefix(url, "http://"), sent))
			lines := bufio.NewReader(clients.Out)
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "open\n", line)
			require.Eventually(t, func() bool { return runtime.NumGoroutine() >= goroutines+n }, 20*time.Second, 10*time.Millisecond)
			perConn := (liveHeap() - heap) / int64(n)
			t.Logf("%d connections, %d bytes each", n, perConn)
			require.Less(t, perConn, int64(32<<10))
			require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+n+20)
			for range 20 {
				res, err := request(t, c, "GET", url)
				require.NoError(t, err)
				require.Equal(t, "here", res.body)
			}

			require.NoError(t, srv.Shutdown(t.Context()))
			line, err = lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "all closed\n", line)
			clients.End(t)
			require.Empty(t, l.at("ERROR"))
		})
	}
}

// openConns opens connections and sends the given request, if any, on each of them. It prints "open" after the last
// response, and "all closed" after the server has closed every connection.
func openConns(arg string, _ io.Reader, out io.Writer) {
	var n int
	var addr, send string
	if _, err := fmt.Sscanf(arg, "%d %s %q", &n, &addr, &send); err != nil {
		panic(err)
	}
	conns := make([]net.Conn, n)
	next := make(chan int)
	var dialing sync.WaitGroup
	for range 16 {
		dialing.Go(func() {
			for i := range next {
				conn, err := net.Dial("tcp", addr)
				if err == nil && send != "" {
					if _, err = io.WriteString(conn, send); err == nil {
						_, err = io.ReadAtLeast(conn, make([]byte, 1<<10), 50)
					}
				}
				if err != nil {
					panic(err)
				}
				conns[i] = conn
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	dialing.Wait()
	fmt.Fprintln(out, "open")
	for _, conn := range conns {
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			panic(err)
		}
		conn.Close()
	}
	fmt.Fprintln(out, "all closed")
}

// releases checks at the end of the test that the process has no more goroutines and file descriptors than now.
func releases(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the runtime's own descriptors are there from now on
	require.NoError(t, err)
	require.NoError(t, l.Close())
	goroutines, files := runtime.NumGoroutine(), descriptors()
	t.Cleanup(func() {
		var g, f int
		for range 2000 {
			if g, f = runtime.NumGoroutine(), descriptors(); g <= goroutines && f <= files {
				return
			}
			<-time.After(10 * time.Millisecond)
		}
		t.Errorf("%d goroutines and %d descriptors, began with %d and %d", g, f, goroutines, files)
	})
}

// descriptors returns how many files the process has open, or 0 if the system doesn't list them.
func descriptors() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

// countedListener counts the bytes that the server reads from all of its connections.
type countedListener struct {
	net.Listener
	read atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedReads{c, &l.read}, nil
}

type countedReads struct {
	net.Conn
	n *atomic.Int64
}

func (c countedReads) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// liveHeap returns the number of bytes in live objects and stacks.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // sync.Pool keeps its objects for one collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
