package server_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/server"
)

// load sends numbered requests and records what has become of them.
type load struct {
	sent         atomic.Int64
	began, ended sync.Map // numbers of the requests whose handlers have begun and have returned
	whole        sync.Map // numbers of the requests with whole responses
	refused      atomic.Int64
}

const loadBody = "the whole response"

func (l *load) handle(w http.ResponseWriter, req *server.Request) error {
	l.began.Store(req.PathValue("n"), true)
	defer l.ended.Store(req.PathValue("n"), true)
	half := len(loadBody) / 2
	if _, err := io.WriteString(w, loadBody[:half]); err != nil {
		return err
	}
	<-time.After(time.Millisecond)
	return writeText(w, loadBody[half:])
}

// run sends requests until the server refuses connections. get returns the body of the response to one.
func (l *load) run(t *testing.T, get func(n string) (string, error)) {
	for {
		n := strconv.FormatInt(l.sent.Add(1), 10)
		body, err := get(n)
		switch {
		case err == nil && body == loadBody:
			l.whole.Store(n, true)
		case err == nil:
			t.Errorf("request %s has the response %q", n, body)
		case errors.Is(err, syscall.ECONNREFUSED):
			l.refused.Add(1)
			return
		default:
			t.Errorf("request %s was lost: %v", n, err)
		}
	}
}

// check fails the test if a request has reached its handler but has no complete response.
func (l *load) check(t *testing.T) {
	t.Helper()
	began := 0
	l.began.Range(func(n, _ any) bool {
		began++
		if _, ok := l.ended.Load(n); !ok {
			t.Errorf("Shutdown did not wait for request %s", n)
		}
		if _, ok := l.whole.Load(n); !ok {
			t.Errorf("request %s was dropped", n)
		}
		return true
	})
	require.NotZero(t, began)
	require.NotZero(t, l.refused.Load())
	t.Logf("%d requests were answered, %d connections refused", began, l.refused.Load())
}

// getRaw sends a request and returns the response's body. If conn is nil, getRaw dials. It also returns the
// connection, or nil if the connection cannot be used again.
func getRaw(addr, n, fields string, conn *net.TCPConn) (string, *net.TCPConn, error) {
	if conn == nil {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return "", nil, err
		}
		conn = c.(*net.TCPConn)
	}
	res, err := exchangeOn(conn, "GET /"+n+" HTTP/1.1\r\nHost: x\r\n"+fields+"\r\n")
	if err != nil {
		conn.Close()
		return "", nil, err
	}
	if res.Close {
		conn.Close()
		conn = nil
	}
	return res.body, conn, nil
}

func exchangeOn(conn net.Conn, request string) (answer, error) {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		return answer{}, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(res.Body)
	return answer{res, string(body)}, err
}

// A Shutdown under load drops no request: each is answered, or its connection is refused. The clients do not retry.
func TestShutdownUnderLoadDropsNoRequest(t *testing.T) {
	for name, fields := range map[string]string{"kept alive": "", "one request each": "Connection: close\r\n"} {
		t.Run(name, func(t *testing.T) {
			releases(t)
			for range 3 {
				shutDownUnderLoad(t, listenItself, func(l *load, url string, _ *http.Client) {
					var conn *net.TCPConn
					l.run(t, func(n string) (body string, err error) {
						body, conn, err = getRaw(strings.TrimPrefix(url, "http://"), n, fields, conn)
						return body, err
					})
				})
			}
		})
	}
}

// Over HTTP/2, GOAWAY names the last stream that is served. net/http's client sends later requests again, on a
// connection that is refused.
func TestShutdownUnderLoadOverHTTP2(t *testing.T) {
	releases(t)
	for range 2 {
		shutDownUnderLoad(t, func(tb testing.TB, srv *server.Server) (string, *http.Client) { return h2Server(t, srv) },
			func(l *load, url string, c *http.Client) {
				l.run(t, func(n string) (string, error) {
					res, err := request(t, c, "GET", url+"/"+n)
					return res.body, err
				})
			})
	}
}

// shutDownUnderLoad lets clients send requests. When some thousands have been answered, it shuts the server down.
func shutDownUnderLoad(t *testing.T, listen func(testing.TB, *server.Server) (string, *http.Client), run func(*load, string, *http.Client)) {
	t.Helper()
	srv, logs := newServer(t, server.Options{})
	l := &load{}
	srv.HandleFunc("GET /{n}", l.handle)
	url, c := listen(t, srv)
	enough := int64(3000)
	if testenv.Racing {
		enough = 500
	}
	done := make(chan struct{})
	go func() { defer close(done); concurrently(32, func(int) { run(l, url, c) }) }()
	require.Eventually(t, func() bool { return l.sent.Load() >= enough }, 60*time.Second, time.Millisecond)
	require.NoError(t, srv.Shutdown(t.Context()))
	<-done
	c.CloseIdleConnections()
	l.check(t)
	require.Empty(t, logs.at("ERROR"))
}

// A connection that is in its TLS handshake when Shutdown begins is served if it has a request. It does not delay
// Shutdown.
func TestShutdownDuringHandshake(t *testing.T) {
	for name, asks := range map[string]bool{"silent": false, "with a request": true} {
		t.Run(name, func(t *testing.T) {
			releases(t)
			srv, logs := newServer(t, server.Options{})
			srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error { return writeText(w, "here") })
			url, later := h2Server(t, srv)
			addr := strings.TrimPrefix(url, "https://")
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer conn.Close()
			_, err = request(t, later, "GET", url) // so that the first connection was accepted
			require.NoError(t, err)
			later.CloseIdleConnections()
			done := shutdown(t.Context(), srv)
			require.Eventually(t, func() bool { // a listener that stops drops what would begin a connection
				c, err := net.DialTimeout("tcp", addr, 20*time.Millisecond)
				if err == nil {
					c.Close()
				}
				return err != nil
			}, 10*time.Second, time.Millisecond)

			began := time.Now()
			c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			start := h2Start()
			if asks {
				start = appendFrame(start, frameHeaders, endStream|endHeaders, 1, getBlock)
			}
			_, err = c.Write(start)
			require.NoError(t, err)
			if asks {
				require.NotNil(t, responseTo(c, 1))
			}
			require.NoError(t, <-done)
			require.Less(t, time.Since(began), 10*time.Second, "less than the IdleTimeout")
			require.Empty(t, logs.at("ERROR"))
		})
	}
}
