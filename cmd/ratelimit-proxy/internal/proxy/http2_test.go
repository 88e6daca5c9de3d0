package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// countedZeros is an endless request body. It counts the bytes that were read from it.
type countedZeros struct{ n *atomic.Int64 }

func (z countedZeros) Read(p []byte) (int, error) {
	z.n.Add(int64(len(p)))
	clear(p)
	return len(p), nil
}

// TestUnreadUploadsDoNotBlockConnection starts uploads that the upstream does not read. Other requests on the same
// HTTP/2 connection must still succeed, although all of them share a flow-control window.
func TestUnreadUploadsDoNotBlockConnection(t *testing.T) {
	t.Parallel()
	const unread = 8
	arrived, release, ended := make(chan struct{}, unread), make(chan struct{}), make(chan error, unread)
	releaseAll := sync.OnceFunc(func() { close(release) })
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/unread" {
			hashing(w, r)
			return
		}
		arrived <- struct{}{}
		<-release
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	})
	t.Cleanup(releaseAll)
	p := overTLS(t, parse(t, "upstreams: {main: {url: %q, response_timeout: 10m}}\n", up.URL))
	p.client.Transport.(*http.Transport).MaxConnsPerHost = 1
	uploads, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sent atomic.Int64
	failed := make(chan error, unread)
	for range unread {
		req, err := http.NewRequestWithContext(uploads, "POST", p.url+"/unread", countedZeros{&sent})
		require.NoError(t, err)
		go func() {
			_, err := p.client.Do(req) // Do returns an error, so there is no body to close
			failed <- err
		}()
	}
	for range unread {
		<-arrived
	}
	for before := int64(-1); before != sent.Load(); <-time.After(300 * time.Millisecond) {
		before = sent.Load()
	}
	ctx, timeout := context.WithTimeout(t.Context(), 10*time.Second)
	defer timeout()
	req, err := http.NewRequestWithContext(ctx, "POST", p.url, strings.NewReader(strings.Repeat("x", 100<<10)))
	require.NoError(t, err)
	res, err := p.client.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)

	cancel() // resets the streams of the uploads
	for range unread {
		require.ErrorIs(t, <-failed, context.Canceled)
	}
	releaseAll()
	for range unread {
		require.Error(t, <-ended, "the connection to the upstream has ended")
	}
	require.Empty(t, p.log.lines(`"level":"ERROR"`))
}

// behindHTTP2 starts an upstream that accepts HTTP/2 without TLS, and headers of up to 8 KiB.
func behindHTTP2(tb testing.TB, h http.HandlerFunc) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.MaxHeaderBytes = 8 << 10
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	tb.Cleanup(s.Close)
	return s.URL
}

// TestAbandonedUploads has clients that stop sending in the middle of an upload. The upstream must get an error, and
// other requests on the same connections must succeed.
func TestAbandonedUploads(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		for name, start := range map[string]func(testing.TB, config.Config) *running{"HTTP/1": run, "HTTP/2": overTLS} {
			t.Run(fmt.Sprint(name, ", http2 ", http2), func(t *testing.T) {
				t.Parallel()
				testAbandonedUploads(t, http2, start)
			})
		}
	}
}

func testAbandonedUploads(t *testing.T, http2 bool, start func(testing.TB, config.Config) *running) {
	type upload struct {
		path string
		err  error
	}
	began, ended := make(chan struct{}, 1), make(chan upload, 1)
	h := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			hashing(w, r)
			return
		}
		began <- struct{}{}
		if r.URL.Path == "/early" {
			control := http.NewResponseController(w)
			_ = control.EnableFullDuplex()
			_ = control.Flush()
		}
		_, err := io.Copy(io.Discard, r.Body)
		ended <- upload{r.URL.Path, err}
	}
	upstream := "main: {url: " + behind(t, h).URL + "}"
	if http2 {
		upstream = "main: {url: " + behindHTTP2(t, h) + ", http2: cleartext}"
	}
	p := start(t, parse(t, "upstreams: {%s}\ntimeouts: {stall: 3s}\n", upstream))
	for _, reset := range []bool{false, true} {
		for _, path := range []string{"/silent", "/early"} {
			body, writer := io.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			req, err := http.NewRequestWithContext(ctx, "POST", p.url+path, body)
			require.NoError(t, err)
			answered := make(chan int, 1)
			go func() {
				res, err := p.client.Do(req)
				if err != nil {
					t.Log(err)
					answered <- 0
					return
				}
				answered <- res.StatusCode
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}()
			_, err = writer.Write([]byte("01234"))
			require.NoError(t, err)
			<-began // if the client reset the request earlier, the upstream would not get it
			require.Equal(t, 200, p.do(t, "POST", "/", strings.NewReader("x")).StatusCode)
			if reset {
				cancel()
			}
			end := <-ended
			require.Error(t, end.err, "the upstream must not take the part for the whole")
			require.Equal(t, path, end.path)
			require.Equal(t, 200, p.do(t, "POST", "/", strings.NewReader("x")).StatusCode)
			_ = writer.Close()
			status := <-answered
			if path == "/silent" && !reset {
				require.Equal(t, http.StatusRequestTimeout, status)
			}
			cancel()
		}
	}
	require.Empty(t, p.log.lines("doesn't answer"), "the upstream has not failed")
}

// sendFields sends a request over HTTP/2. fields are names and values in turn, which may be invalid. It returns the
// response's status if that is 200 or 400, and 0 otherwise.
func (r *running) sendFields(tb testing.TB, fields ...string) int {
	tb.Helper()
	conn, err := tls.Dial("tcp", r.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(tb, err)
	defer conn.Close()
	require.NoError(tb, conn.SetDeadline(time.Now().Add(20*time.Second)))
	var block []byte
	for i := 0; i < len(fields); i += 2 { // encoded as literals without indexing (RFC 7541)
		block = append(append(block, 0, byte(len(fields[i]))), fields[i]...)
		block = append(append(block, byte(len(fields[i+1]))), fields[i+1]...)
	}
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" // the second string is a SETTINGS frame
	headers := []byte{0, 0, byte(len(block)), 1, 5, 0, 0, 0, 1}                            // the flags 5 mean END_HEADERS and END_STREAM
	_, err = io.WriteString(conn, preface+string(headers)+string(block))
	require.NoError(tb, err)
	for answers := bufio.NewReader(conn); ; {
		var head [9]byte
		_, err := io.ReadFull(answers, head[:])
		require.NoError(tb, err)
		payload := make([]byte, int(head[1])<<8|int(head[2]))
		_, err = io.ReadFull(answers, payload)
		require.NoError(tb, err)
		if head[3] == 1 { // a HEADERS frame, which begins with the status
			return map[byte]int{0x88: 200, 0x8c: 400}[payload[0]]
		}
	}
}

// TestInvalidFieldsOverHTTP2 checks that the proxy refuses fields that HTTP/2 can carry but HTTP/1 cannot.
func TestInvalidFieldsOverHTTP2(t *testing.T) {
	up := behind(t, nil)
	p := overTLS(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - {name: method, match: {methods: [POST]}, key: "{client.ip}", limit: 1000/h, deny: [127.0.0.1]}
  - {name: key, key: "{header.X-Key}", limit: 1000/h, deny: [enemy]}
`, up.URL))
	for _, fields := range [][]string{
		{":method", "G T"}, {":method", "G(T"}, {":method", "post"}, {":method", "Post"},
		{":path", "/?a b"}, {":path", "/?a HTTP/1.0"}, {":path", "/? "},
		{"x-key", "enemy "}, {"x-key", " enemy"}, {"x-key", "enemy\t"}, {"x-key", "a", "x-key", " enemy"},
	} {
		all := []string{":method", "GET", ":path", "/", ":scheme", "https", ":authority", "a"}
		for i := 0; i < len(fields); i += 2 {
			if at := slices.Index(all, fields[i]); at >= 0 && fields[i][0] == ':' {
				all[at+1] = fields[i+1]
			} else {
				all = append(all, fields[i:i+2]...)
			}
		}
		require.Equal(t, 400, p.sendFields(t, all...), "%q", fields)
	}
	require.Zero(t, up.n.Load())
	require.Empty(t, p.log.lines("doesn't answer"), "the upstream has not failed")
	require.Equal(t, 200, p.sendFields(t, ":method", "M-SEARCH", ":path", "/a b?c", ":scheme", "https", ":authority", "a", "x-key", "a enemy", "x-empty", ""))
	require.Equal(t, "/a%20b?c", up.last.Load().RequestURI)
}

// TestUnsendableOverHTTP2 has requests that net/http can't send to an upstream over HTTP/2. This must not count as a
// failure of the upstream.
func TestUnsendableOverHTTP2(t *testing.T) {
	up := behindHTTP2(t, hashing)
	c := parse(t, "upstreams: {main: {url: %q, http2: cleartext}}\nrules: [{name: limit, limit: 2/h}]\n", up)
	p := overTLS(t, c)
	fields := []string{":method", "GET", ":path", "/", ":scheme", "https", ":authority", "a"}
	require.Equal(t, 200, p.sendFields(t, append(fields, "trailer", "x")...), "without a body, it is not a trailer's announcement")
	require.Equal(t, 431, p.get(t, "/", "X-Large", strings.Repeat("x", 16<<10)).StatusCode)

	require.Empty(t, p.log.lines("doesn't answer"))

	p = run(t, c)
	require.Equal(t, 400, p.get(t, "/", "Connection", "Upgrade", "Upgrade", "websocket").StatusCode)
	require.EqualValues(t, 2, p.status(t, "/")["remaining"], "it is not charged")
	require.Empty(t, p.log.lines("doesn't answer"))
	require.Empty(t, p.metrics(t, "ratelimit_proxy_upstream_failures"))
}
