package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// uploading is the connection of a client that has sent a part of its request.
type uploading struct {
	net.Conn
	answers *bufio.Reader
}

// upload connects to the proxy and sends text, the beginning of a request. Reads from the connection fail after 20 s,
// which is less than the stall timeout.
func (r *running) upload(tb testing.TB, text string) *uploading {
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	require.NoError(tb, conn.SetDeadline(time.Now().Add(20*time.Second)))
	u := &uploading{conn, bufio.NewReader(conn)}
	u.send(tb, text)
	return u
}

func (u *uploading) send(tb testing.TB, text string) {
	_, err := io.WriteString(u, text)
	require.NoError(tb, err)
}

// answer reads a response with its body.
func (u *uploading) answer(tb testing.TB) answer {
	res, err := http.ReadResponse(u.answers, nil)
	require.NoError(tb, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(tb, err)
	return answer{res, string(body)}
}

// ends waits until the proxy closes the connection. The test fails if the proxy sends more data.
func (u *uploading) ends(tb testing.TB) {
	rest, err := io.ReadAll(u.answers)
	require.NoError(tb, err)
	require.Empty(tb, rest)
}

// TestDenialBeforeBody checks that the proxy answers a request before its body has arrived, if it doesn't forward the
// request.
func TestDenialBeforeBody(t *testing.T) {
	t.Parallel()
	free, err := testhost.ReservePort()
	require.NoError(t, err)
	defer free.Release()
	p := run(t, parse(t, `
upstreams: {main: {url: %q}, down: {url: 'http://%s'}}
routes: [{upstream: down, match: {paths: [/down]}}, {upstream: main, match: {paths: [/main]}}]
rules:
  - {name: limit, key: "{client.ip}", limit: 1/h, match: {methods: [POST], paths: [/main]}}
  - {name: list, key: "{header.X-Key}", limit: 9/h, deny: [bad]}
  - {name: reject, key: "{header.X-Key}", limit: 9/h, missing: reject, match: {methods: [DELETE]}}
`, behind(t, hashing).URL, free.Addr()))
	require.Equal(t, 200, p.do(t, "POST", "/main", nil).StatusCode)
	const sized, chunked = "Content-Length: 100000\r\n\r\n01234", "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n"
	var lingering []*uploading
	for head, want := range map[string]int{
		"POST /main HTTP/1.1\r\nHost: a":                              429,
		"POST /main HTTP/1.1\r\nHost: a\r\nExpect: 100-continue":      429,
		"PUT /main HTTP/1.1\r\nHost: a\r\nX-Key: bad":                 403,
		"DELETE /main HTTP/1.1\r\nHost: a":                            400,
		"PUT /main HTTP/1.1\r\nHost: a:1:1":                           400,
		"PUT /main HTTP/1.1\r\nHost: a\r\nUpgrade: h2c":               400,
		"PUT /main HTTP/1.1\r\nHost: a\r\nUpgrade: websocket":         400,
		"PUT /other HTTP/1.1\r\nHost: a":                              404,
		"PUT /down HTTP/1.1\r\nHost: a":                               502,
		"PUT /status/x HTTP/1.1\r\nHost: a":                           405,
		"PUT /main HTTP/1.1\r\nHost: a\r\nX-Ratelimit-Status: true":   200,
		"CONNECT a:1 HTTP/1.1\r\nHost: a":                             501,
		"PUT /main HTTP/1.1\r\nHost: a\r\nX-Key: k\r\nUpgrade: x, y":  400,
		"POST /main HTTP/1.1\r\nHost: a\r\nX-Key: k, bad\r\nX-Key: k": 429,
	} {
		for _, body := range []string{sized, chunked, "Content-Length: 9000000\r\n\r\n"} {
			client := p.upload(t, head+"\r\n"+body)
			a := client.answer(t)
			require.Equal(t, want, a.StatusCode, "%s: %s", head, a.body)
			require.True(t, a.Close, "%s: the end is announced", head)
			lingering = append(lingering, client)
		}
	}
	for _, client := range lingering {
		client.ends(t)
	}

	p = overTLS(t, limited(t, behind(t, hashing).URL, "1/h"))
	require.True(t, p.passes(t, "/"))
	body, writer := io.Pipe()
	defer writer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", p.url, body)
	require.NoError(t, err)
	res, err := p.client.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, 2, res.ProtoMajor)
}

// TestDenialEndsConnectionInOrder checks that the proxy doesn't reset the connection of a client that is still
// sending. A reset would destroy the response before the client reads it.
func TestDenialEndsConnectionInOrder(t *testing.T) {
	p := run(t, limited(t, behind(t, nil).URL, "1/h"))
	require.True(t, p.passes(t, "/"))
	for _, head := range []string{"POST / HTTP/1.0\r\n", "POST / HTTP/1.1\r\nConnection: close\r\n"} {
		client := p.upload(t, head+"Host: a\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("0", 64<<10))
		require.Equal(t, 429, client.answer(t).StatusCode)
		client.ends(t)
	}
}

// TestDenialDuringSlowUpload checks that a client gets a denial while it is still sending its body in small pieces.
func TestDenialDuringSlowUpload(t *testing.T) {
	p := run(t, limited(t, behind(t, nil).URL, "1/h"))
	require.True(t, p.passes(t, "/"))
	client := p.upload(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 60_000 {
			if _, err := io.WriteString(client, "0"); err != nil {
				return
			}
			<-time.After(5 * time.Millisecond)
		}
	}()
	a := client.answer(t)
	require.Equal(t, 429, a.StatusCode)
	require.True(t, a.Close)
	require.NoError(t, client.Close())
	<-done
}

// TestDenialKeepsConnectionAfterShortBody checks that a denial doesn't end the connection if the body is short and
// has arrived.
func TestDenialKeepsConnectionAfterShortBody(t *testing.T) {
	p := run(t, limited(t, behind(t, nil).URL, "1/h"))
	require.True(t, p.passes(t, "/"))
	for _, body := range []string{"Content-Length: 5\r\n\r\n01234", "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n0\r\n\r\n", "Content-Length: 0\r\n\r\n"} {
		kept := 0
		for try := 0; kept < 3 && try < 50; try++ { // on a busy machine, the body may arrive too late
			client := p.upload(t, "")
			for kept = 0; kept < 3; kept++ {
				client.send(t, "POST / HTTP/1.1\r\nHost: a\r\n"+body)
				a := client.answer(t)
				require.Equal(t, 429, a.StatusCode)
				if a.Close {
					break
				}
			}
		}
		require.Equal(t, 3, kept, body)
	}
}

// TestDenialEndsConnectionAfterUnreadableBody checks that a denial ends the connection if the body is too long or
// malformed. Otherwise, the rest of the body would be read as the next request.
func TestDenialEndsConnectionAfterUnreadableBody(t *testing.T) {
	p := run(t, limited(t, behind(t, nil).URL, "1/h"))
	require.True(t, p.passes(t, "/"))
	for name, body := range map[string]string{
		"long":      "18000\r\n" + strings.Repeat("0", 0x18000) + "\r\n",
		"malformed": "5\r\n01234\r\nzz\r\n",
	} {
		client := p.upload(t, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
		a := client.answer(t)
		require.Equal(t, 429, a.StatusCode, name)
		require.True(t, a.Close, name)
	}
}

// TestEarlyResponse has an upstream that responds before it has the whole request. The client must get the response
// at once. Then the proxy closes the connection.
func TestEarlyResponse(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		w.Header().Set("Connection", "close") // net/http can't reuse a connection with an unread body
		if strings.HasPrefix(r.URL.Path, "/length") {
			w.Header().Set("Content-Length", "5")
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "early")
		_ = control.Flush()
		if r.URL.Path == "/length/waiting" {
			<-seen
		}
	})
	for _, p := range []*running{run(t, limited(t, up.URL, "1000/h")), overTLS(t, limited(t, up.URL, "1000/h"))} {
		for _, path := range []string{"/length", "/chunks"} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			body, writer := io.Pipe()
			context.AfterFunc(ctx, func() { _ = writer.Close() }) // net/http waits until a Read of the body returns
			go func() { _, _ = io.WriteString(writer, "01234") }()
			req, err := http.NewRequestWithContext(ctx, "POST", p.url+path, body)
			require.NoError(t, err)
			res, err := p.client.Do(req)
			require.NoError(t, err)
			require.Equal(t, 401, res.StatusCode)
			text, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, "early", string(text))
			require.NoError(t, res.Body.Close())
			_ = writer.Close()
			cancel()
		}
	}
	p := run(t, limited(t, up.URL, "1000/h"))
	for _, path := range []string{"/length", "/chunks"} {
		for _, body := range []string{"Content-Length: 100000\r\n\r\n01234", "Content-Length: 9000000\r\n\r\n01234", "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n"} {
			client := p.upload(t, "POST "+path+" HTTP/1.1\r\nHost: a\r\n"+body)
			a := client.answer(t)
			require.Equal(t, 401, a.StatusCode)
			require.Equal(t, "early", a.body)
			require.True(t, a.Close, "the end is announced")
			client.ends(t)
		}
	}
	client := p.upload(t, "POST /length/waiting HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n01234")
	a := client.answer(t)
	close(seen)
	require.Equal(t, "early", a.body, "though the upstream isn't done")
	require.Empty(t, p.log.lines(`"level":"ERROR"`))
}

// TestFullDuplex checks that the bodies of a request and its response can be streamed at the same time.
func TestFullDuplex(t *testing.T) {
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", "9")
		}
		_ = control.Flush()
		for p := make([]byte, 9); ; {
			n, err := r.Body.Read(p)
			_, _ = w.Write(p[:n])
			_ = control.Flush()
			if err != nil {
				return
			}
		}
	})
	for _, p := range []*running{run(t, limited(t, up.URL, "1000/h")), overTLS(t, limited(t, up.URL, "1000/h"))} {
		for _, path := range []string{"/length", "/chunks"} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			body, writer := io.Pipe()
			context.AfterFunc(ctx, func() { _ = writer.Close() }) // net/http waits until a Read of the body returns
			req, err := http.NewRequestWithContext(ctx, "POST", p.url+path, body)
			require.NoError(t, err)
			res, err := p.client.Do(req)
			require.NoError(t, err)
			for _, text := range []string{"abc", "def", "ghi"} {
				_, err = io.WriteString(writer, text)
				require.NoError(t, err)
				echo := make([]byte, 3)
				_, err = io.ReadFull(res.Body, echo)
				require.NoError(t, err)
				require.Equal(t, text, string(echo))
			}
			require.NoError(t, writer.Close())
			rest, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.NoError(t, res.Body.Close())
			cancel()
		}
	}
}
