package server_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/server"
)

// reading returns a server with routes that read bodies, and a route that does not.
func reading(t *testing.T) *server.Server {
	srv, _ := newServer(t, server.Options{
		ReadHeaderTimeout: 300 * time.Millisecond, ReadTimeout: 500 * time.Millisecond, IdleTimeout: 300 * time.Millisecond,
	})
	srv.HandleFunc("POST /", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := io.Copy(io.Discard, req.Body)
		return err
	})
	srv.HandleFunc("POST /unread", func(http.ResponseWriter, *server.Request) error { return nil })
	srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error { return writeText(w, "here") })
	return srv
}

// Clients that send only a byte now and then (slowloris) lose their connections. Other clients are served meanwhile.
func TestSlowClientsLoseTheirConnections(t *testing.T) {
	releases(t)
	url, c := listenItself(t, reading(t))
	post := func(path, fields string) string { return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" }
	const chunked = "Transfer-Encoding: chunked\r\n"
	var clients []*slowClient
	for name, send := range map[string][2]string{
		"request line":          {"GET /", "a"},
		"header":                {"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", "a"},
		"header, whole fields":  {"GET / HTTP/1.1\r\nHost: x\r\n", "X-Slow: a\r\n"},
		"body":                  {post("/", "Content-Length: 100000\r\n"), "a"},
		"body, whole chunks":    {post("/", chunked), "1\r\na\r\n"},
		"chunk extension":       {post("/", chunked) + "1;", "a"},
		"trailer":               {post("/", chunked) + "0\r\nX-Slow: ", "a"},
		"body that is not read": {post("/unread", "Content-Length: 100000\r\n"), "a"},
		"second request":        {get, "GET"},
	} {
		for range 30 {
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			require.NoError(t, err)
			clients = append(clients, &slowClient{Conn: conn, name: name, begin: send[0], drip: send[1]})
		}
	}
	requireCut(t, clients, url, c)
}

func TestSlowHTTP2ClientsLoseTheirConnections(t *testing.T) {
	releases(t)
	url, c := h2Server(t, reading(t))
	start := string(h2Start())
	frame := func(kind, flags byte, stream uint32, payload string) string {
		return string(appendFrame(nil, kind, flags, stream, payload))
	}
	const longField = "\x00\x01a\x7f\x80\x7d" // its value has 16,255 bytes
	var clients []*slowClient
	for name, send := range map[string][2]string{
		"header":     {start + frame(frameHeaders, endStream, 1, getBlock+longField), frame(frameContinuation, 0, 1, "a")},
		"body":       {start + frame(frameHeaders, endHeaders, 1, postBlock), frame(frameData, 0, 1, "a")},
		"only pings": {start, frame(framePing, 0, 0, "12345678")},
		"nothing":    {start, ""},
	} {
		for range 15 {
			clients = append(clients, &slowClient{Conn: dialH2(t, url), name: name, begin: send[0], drip: send[1]})
		}
	}
	requireCut(t, clients, url, c)
}

// slowClient sends begin at once, and then drip again and again, until the server closes the connection.
type slowClient struct {
	net.Conn
	name, begin, drip string

	closed atomic.Bool // by the server
}

func (s *slowClient) run() {
	defer s.Close()
	go func() { // ends with the connection
		_, _ = io.WriteString(s, s.begin)
		for !s.closed.Load() {
			<-time.After(50 * time.Millisecond)
			_, _ = io.WriteString(s, s.drip)
		}
	}()
	_, _ = io.Copy(io.Discard, s)
	s.closed.Store(true)
}

// requireCut runs the clients until the server has closed their connections. Meanwhile, c must get its responses.
func requireCut(t *testing.T, clients []*slowClient, url string, c *http.Client) {
	t.Helper()
	c.Timeout = 10 * time.Second
	began := time.Now()
	all := make(chan struct{})
	go func() {
		defer close(all)
		concurrently(len(clients), func(i int) { clients[i].run() })
	}()
	for n := 0; ; n++ {
		res, err := request(t, c, "GET", url)
		require.NoError(t, err)
		require.Equal(t, "here", res.body)
		select {
		case <-all:
			t.Logf("%d connections ended within %v, %d other requests", len(clients), time.Since(began).Round(time.Millisecond), n)
			return
		case <-time.After(10 * time.Millisecond):
		}
		if time.Since(began) > 20*time.Second {
			for _, s := range clients {
				if !s.closed.Load() {
					t.Errorf("%s: the connection is still open", s.name)
					s.Close()
				}
			}
			t.FailNow()
		}
	}
}

// maxStreams is the number of requests that net/http by default handles at the same time on an HTTP/2 connection.
const maxStreams = 250

// rapidReset opens n streams and resets each of them at once. It stops if the server ends the connection.
func rapidReset(c net.Conn, n int) {
	b := h2Start()
	for i := range n {
		stream := uint32(2*i + 1)
		b = appendFrame(b, frameHeaders, endStream|endHeaders, stream, getBlock)
		b = appendFrame(b, frameReset, 0, stream, "\x00\x00\x00\x08") // CANCEL
		if (i+1)%100 != 0 {
			continue
		}
		if _, err := c.Write(b); err != nil {
			return
		}
		b = b[:0]
	}
}

// A client opens and resets streams as fast as it can (CVE-2023-44487). The server runs at most maxStreams of its
// requests at the same time, even if their handlers ignore the reset. If too many requests wait, the server ends the
// connection. Other clients are served meanwhile.
func TestRapidResets(t *testing.T) {
	const attackers = 4
	for name, deaf := range map[string]bool{"handlers that heed the reset": false, "handlers that go on": true} {
		t.Run(name, func(t *testing.T) {
			releases(t)
			srv, logs := newServer(t, server.Options{})
			var running, most, handled atomic.Int64
			release := make(chan struct{})
			srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
				handled.Add(1)
				n := running.Add(1)
				defer running.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				if deaf {
					<-release
					return nil
				}
				<-req.Context().Done()
				return req.Context().Err()
			})
			srv.HandleFunc("GET /other", func(w http.ResponseWriter, _ *server.Request) error { return writeText(w, "here") })
			url, c := h2Server(t, srv)
			c.Timeout = 10 * time.Second
			streams := 20_000
			if testenv.Racing {
				streams = 5_000
			}
			conns := make([]net.Conn, attackers)
			for i := range conns {
				conns[i] = dialH2(t, url)
			}
			var attack sync.WaitGroup
			for _, conn := range conns {
				attack.Go(func() {
					rapidReset(conn, streams)
					if !deaf {
						conn.Close()
					}
				})
				attack.Go(func() { _, _ = io.Copy(io.Discard, conn) })
			}
			for range 10 {
				res, err := request(t, c, "GET", url+"/other")
				require.NoError(t, err)
				require.Equal(t, "here", res.body)
			}
			attack.Wait() // until the server ends the connections, if the handlers go on
			if deaf {
				require.LessOrEqual(t, handled.Load(), int64(attackers*maxStreams))
				close(release)
			}
			require.LessOrEqual(t, most.Load(), int64(attackers*maxStreams))
			require.Eventually(t, func() bool { return running.Load() == 0 }, 20*time.Second, time.Millisecond)
			t.Logf("%d of up to %d streams handled, at most %d at once", handled.Load(), attackers*streams, most.Load())
			require.Empty(t, logs.at("ERROR"))
		})
	}
}
