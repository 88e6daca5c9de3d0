package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/server"
)

// idleConns is how many connections one process keeps open: 10,000 unless it may open fewer files, and
// 2,000 under the race detector.
func idleConns(t *testing.T) int {
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	n := 10_000
	if testenv.Racing {
		n = 2_000
	}
	return min(n, int(limit.Cur)-500)
}

// Idle connections cost a goroutine and a few KiB each, other clients are served among them, and a Shutdown
// ends them all. The clients are in a process of their own.
func TestThousandsOfIdleConnections(t *testing.T) {
	testhost.ServeProcess(t, openConns)
	for name, sent := range map[string]string{"before a request": "", "after a request": "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			testhost.ServeProcess(t, openConns)
			releases(t)
			srv, l := newServer(t, server.Options{ReadHeaderTimeout: time.Minute})
			srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error {
				_, err := io.WriteString(w, "here")
				return err
			})
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

// openConns opens connections, sends a request on each if it has one, reports "open" when it has the
// responses, and "all closed" when the server has closed every connection.
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
