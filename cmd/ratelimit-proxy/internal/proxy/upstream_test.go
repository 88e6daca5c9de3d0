package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// answering starts a server that answers the first request of each connection with text. Then it closes or resets the
// connection. It returns the server's URL.
func answering(tb testing.TB, text string, reset bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, text)
			if reset {
				_ = conn.(*net.TCPConn).SetLinger(0)
			}
			_ = conn.Close()
		}
	}()
	tb.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String()
}

func TestFailingUpstreams(t *testing.T) {
	free, err := testhost.ReservePort()
	require.NoError(t, err)
	defer free.Release()
	slow := behind(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	for _, c := range []struct {
		name, url string
		want      int
	}{
		{"down", "http://" + free.Addr(), 502},
		{"slow", slow.URL, 504},
		{"resetting", answering(t, "", true), 502},
		{"silent", answering(t, "", false), 502},
		{"speaking something else", answering(t, "SSH-2.0-x\r\n", false), 502},
		{"header cut off", answering(t, "HTTP/1.1 200 OK\r\nConten", true), 502},
		{"header too large", answering(t, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 2200)+"\r\n", false), 502},
	} {
		timeout := "30s" // on a busy machine, a large header takes more than 100 ms
		if c.want == 504 {
			timeout = "100ms"
		}
		p := run(t, parse(t, "upstreams: {main: {url: %q, response_timeout: %s}}\nrules: [{name: limit, limit: 10/60s}]\n", c.url, timeout))
		for _, method := range []string{"GET", "POST"} {
			var body io.Reader
			if method == "POST" {
				body = strings.NewReader("x")
			}
			a := p.do(t, method, "/", body)
			require.Equal(t, c.want, a.StatusCode, "%s: %s", c.name, a.body)
			require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
			require.NotContains(t, a.body, "127.0.0.1", "addresses of upstreams are not shown")
			require.NotEmpty(t, a.Header.Get("X-RateLimit-Remaining"), "it was charged")
		}
		require.Len(t, p.log.lines(`"level":"ERROR"`), 1, c.name)
		require.Len(t, p.log.lines("request failed"), 2, c.name)
		require.Contains(t, p.metrics(t, "ratelimit_proxy_upstream_failures_total"), " 2\n")
	}
}

// TestTruncatedResponses has an upstream that closes the connection in the middle of a response. The client must get
// the part that has arrived, and an error. (With a reset, the part could be lost.)
func TestTruncatedResponses(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf":                 "half",
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n":                     "",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n": "half",
	} {
		for protocol, start := range map[string]func(testing.TB, config.Config) *running{"HTTP/1": run, "HTTP/2": overTLS} {
			p := start(t, limited(t, answering(t, text, false), "10/60s"))
			for _, body := range []io.Reader{nil, strings.NewReader("a body")} {
				res, err := p.client.Post(p.url, "", body)
				require.NoError(t, err, "over %s, of %q", protocol, text)
				require.Equal(t, 200, res.StatusCode)
				got, err := io.ReadAll(res.Body)
				require.Error(t, err)
				require.Equal(t, want, string(got))
				require.NoError(t, res.Body.Close())
			}
			require.Eventually(t, func() bool { return len(p.log.lines("broke off")) == 1 }, 20*time.Second, time.Millisecond)
			require.Contains(t, p.log.lines("broke off")[0], `"upstream":"main"`)
			require.Contains(t, p.metrics(t, "ratelimit_proxy_upstream_failures_total"), `{upstream="main",status="cut"} 2`)
		}
	}
}

func TestUpstreamConnectionsAreReused(t *testing.T) {
	addresses := map[string]bool{}
	up := behind(t, func(_ http.ResponseWriter, r *http.Request) { addresses[r.RemoteAddr] = true })
	p := run(t, limited(t, up.URL, "1000/60s"))
	for range 20 {
		require.True(t, p.passes(t, "/"))
	}
	require.NoError(t, p.reload(limited(t, up.URL, "1000/60s")))
	require.True(t, p.passes(t, "/"))
	require.Len(t, addresses, 1, "over a reload, too")
}

// echoing starts a websocket echo server.
func echoing(t *testing.T) *backend {
	return behind(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, message, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, message) != nil {
				return
			}
		}
	})
}

func TestWebsocket(t *testing.T) {
	t.Parallel()
	p := run(t, slowly(t, echoing(t).URL, "rules: [{name: limit, limit: 2/60s}]"))
	c, res, err := websocket.Dial(t.Context(), p.url, &websocket.DialOptions{HTTPClient: p.client})
	require.NoError(t, err)
	require.Equal(t, "1", res.Header.Get("X-RateLimit-Remaining"))
	require.Equal(t, `"limit";r=1;t=60`, res.Header.Get("RateLimit"))
	for _, message := range []string{"hello", strings.Repeat("x", 30_000), "bye"} {
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte(message)))
		_, echo, err := c.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, message, string(echo))
		<-time.After(350 * time.Millisecond) // a pause longer than the stall timeout
	}
	require.NoError(t, c.Close(websocket.StatusNormalClosure, ""))

	c, _, err = websocket.Dial(t.Context(), p.url, &websocket.DialOptions{HTTPClient: p.client})
	require.NoError(t, err)
	_, res, err = websocket.Dial(t.Context(), p.url, &websocket.DialOptions{HTTPClient: p.client})
	require.Error(t, err)
	require.Equal(t, 429, res.StatusCode)

	require.NoError(t, c.CloseNow())
}

// TestWebsocketsDuringShutdown checks that Shutdown waits for websockets, and cuts them off when its context ends.
func TestWebsocketsDuringShutdown(t *testing.T) {
	p := run(t, slowly(t, echoing(t).URL, ""))
	c, _, err := websocket.Dial(t.Context(), p.url, &websocket.DialOptions{HTTPClient: p.client})
	require.NoError(t, err)
	stopping := func(ctx context.Context) <-chan error {
		stopped := make(chan error, 1)
		go func() { stopped <- p.server.Shutdown(ctx) }()
		require.Eventually(t, func() bool { // waits until the proxy accepts no more connections
			conn, err := net.Dial("tcp", p.addr)
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		}, 20*time.Second, time.Millisecond)
		return stopped
	}
	echo := func() error {
		if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
			return err
		}
		_, _, err := c.Read(t.Context())
		return err
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := stopping(ctx)
	for range 3 {
		require.NoError(t, echo())
		select {
		case err := <-stopped:
			require.Fail(t, "it has not waited", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	cancel(errors.New("the grace is over"))
	require.EqualError(t, <-stopped, "the grace is over")
	require.Eventually(t, func() bool { return echo() != nil }, 20*time.Second, time.Millisecond, "it is cut off")
	_ = c.CloseNow()

	p = run(t, slowly(t, echoing(t).URL, ""))
	c, _, err = websocket.Dial(t.Context(), p.url, &websocket.DialOptions{HTTPClient: p.client})
	require.NoError(t, err)
	stopped = stopping(t.Context())
	require.NoError(t, echo())
	require.NoError(t, c.Close(websocket.StatusNormalClosure, ""))
	require.NoError(t, <-stopped, "it ends with the last of them")
	require.Empty(t, p.log.lines(`"level":"ERROR"`))
}

// TestUpstreamThatDoesNotReadBody checks that response_timeout also ends a request whose body the upstream doesn't
// read.
func TestUpstreamThatDoesNotReadBody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p := run(t, parse(t, "upstreams: {main: {url: 'http://%s', response_timeout: 100ms}}\n", l.Addr()))
	res, err := p.client.Post(p.url, "text/plain", io.LimitReader(zeros{}, 64<<20))
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusGatewayTimeout, res.StatusCode)
}

// TestUpstreamReadsBodyLate has an upstream that sends its response's header, and then pauses for longer than
// response_timeout before it reads the body.
func TestUpstreamReadsBodyLate(t *testing.T) {
	t.Parallel()
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		_ = control.Flush()
		<-time.After(4 * time.Second)
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strconv.FormatInt(n, 10))
	})
	for name, start := range map[string]func(testing.TB, config.Config) *running{"HTTP/1": run, "HTTP/2": overTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, parse(t, "upstreams: {main: {url: %q, response_timeout: 3s}}\ntimeouts: {stall: 2s}\n", up.URL))
			require.Equal(t, strconv.Itoa(32<<20), p.do(t, "POST", "/", io.LimitReader(zeros{}, 32<<20)).body)
		})
	}
}

// TestClientPausesDuringUpload has a client that pauses for longer than response_timeout, which must not end the
// request.
func TestClientPausesDuringUpload(t *testing.T) {
	t.Parallel()
	p := run(t, parse(t, "upstreams: {main: {url: %q, response_timeout: 1s}}\n", behind(t, hashing).URL))
	client := p.upload(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n0")
	<-time.After(1500 * time.Millisecond)
	client.send(t, "1")
	require.Equal(t, 200, client.answer(t).StatusCode)
}

func TestInvalidUpstreamStatus(t *testing.T) {
	p := run(t, limited(t, answering(t, "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", false), "10/60s"))
	require.Equal(t, http.StatusBadGateway, p.get(t, "/").StatusCode)
	require.Empty(t, p.log.lines("panic"))
}

// TestStreamingWithContentLength checks that parts of a response are forwarded at once, even if the response has a
// Content-Length.
func TestStreamingWithContentLength(t *testing.T) {
	seen := make(chan struct{})
	up := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2")
		_, _ = io.WriteString(w, "a")
		_ = http.NewResponseController(w).Flush()
		<-seen
		_, _ = io.WriteString(w, "b")
	})
	p := run(t, limited(t, up.URL, "10/60s"))
	res, err := p.client.Get(p.url)
	require.NoError(t, err)
	defer res.Body.Close()
	first := make([]byte, 1)
	_, err = io.ReadFull(res.Body, first)
	require.NoError(t, err)
	close(seen)
	rest, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "ab", string(first)+string(rest))
}
