package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

func readSeeker(s string) io.ReadSeeker { return strings.NewReader(s) }

// hashing is an upstream's handler. It responds with the hash of the request's body.
func hashing(w http.ResponseWriter, r *http.Request) {
	h := sha256.New()
	if _, err := io.Copy(h, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "%x", h.Sum(nil))
}

func TestForwardBodies(t *testing.T) {
	p := run(t, limited(t, behind(t, hashing).URL, "1000/60s"))
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	want := fmt.Sprintf("%x", sha256.Sum256(body))
	require.Equal(t, want, p.do(t, "POST", "/", bytes.NewReader(body)).body, "with its length")
	require.Equal(t, want, p.do(t, "POST", "/", io.MultiReader(bytes.NewReader(body))).body, "in chunks")
	require.Equal(t, want, p.do(t, "POST", "/", bytes.NewReader(body), "Expect", "100-continue").body)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(nil)), p.do(t, "POST", "/", nil).body)
}

// slowly returns a configuration whose stall timeout is 300 ms.
func slowly(tb testing.TB, upstream, more string) config.Config {
	return parse(tb, "upstreams: {main: {url: %q, response_timeout: 10s}}\ntimeouts: {stall: 300ms, header: 300ms}\n%s\n", upstream, more)
}

func TestSlowClients(t *testing.T) {
	t.Parallel()
	up := behind(t, hashing)
	p := run(t, slowly(t, up.URL, "rules: [{name: never, limit: 1/h, match: {paths: [/denied]}}]"))
	require.True(t, p.passes(t, "/denied"))
	const post = "POST / HTTP/1.1\r\nHost: a\r\n"
	for request, want := range map[string]string{
		post + "Content-Length: 10\r\n\r\n01234":                            "HTTP/1.1 408 ",
		post + "Transfer-Encoding: chunked\r\n\r\n5\r\n0123":                "HTTP/1.1 408 ",
		post + "Transfer-Encoding: chunked\r\n\r\nx\r\n":                    "HTTP/1.1 400 ",
		post + "Content-Le":                                                 "",
		"POST /denied HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0":   "HTTP/1.1 429 ",
		"POST /status/x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0": "HTTP/1.1 405 ",
	} {
		require.True(t, strings.HasPrefix(p.send(t, request), want), "%q", request) // send has returned, so the connection has ended
	}
	require.Empty(t, p.log.lines(`"level":"ERROR"`), "that is no failure of the proxy or the upstream")
}

// TestLongUploads checks that an upload may take longer than the stall timeout if it makes progress.
func TestLongUploads(t *testing.T) {
	t.Parallel()
	p := run(t, slowly(t, behind(t, hashing).URL, ""))
	for _, major := range []int{1, 2} {
		body, writer := io.Pipe()
		go func() {
			for range 6 {
				_, _ = io.WriteString(writer, "0123456789")
				<-time.After(80 * time.Millisecond)
			}
			writer.Close()
		}()
		want := fmt.Sprintf("%x", sha256.Sum256(bytes.Repeat([]byte("0123456789"), 6)))
		q := p
		if major == 2 {
			q = overTLS(t, slowly(t, behind(t, hashing).URL, ""))
		}
		a := q.do(t, "POST", "/", body)
		require.Equal(t, want, a.body)
		require.Equal(t, major, a.ProtoMajor)
	}
}

// overTLS starts a proxy with TLS. Its client uses HTTP/2.
func overTLS(tb testing.TB, c config.Config) *running {
	certs := newCertificates(tb)
	c.Listen = []config.Listener{{Address: "127.0.0.1:0", Cert: certs.cert, Key: certs.key}}
	p := run(tb, c)
	p.client = certs.client(tb, true)
	return p
}

// TestSlowUpstreams checks that an upstream may pause for longer than the stall timeout, before and during its
// response.
func TestSlowUpstreams(t *testing.T) {
	t.Parallel()
	up := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(400 * time.Millisecond)
		_, _ = io.WriteString(w, "a")
		_ = http.NewResponseController(w).Flush()
		<-time.After(400 * time.Millisecond)
		_, _ = io.WriteString(w, "b")
	})
	for _, p := range []*running{run(t, slowly(t, up.URL, "")), overTLS(t, slowly(t, up.URL, ""))} {
		require.Equal(t, "ab", p.get(t, "/").body)
		require.Equal(t, "ab", p.do(t, "POST", "/", strings.NewReader("x")).body, "on the same connection")
	}
}

func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	up := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for p := make([]byte, 1<<20); err == nil; {
			_, err = w.Write(p)
		}
		ended <- err
	})
	p := run(t, slowly(t, up.URL, ""))
	conn, err := net.Dial("tcp", p.addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, err)
	select {
	case err = <-ended:
		require.Error(t, err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "the upstream still writes")
	}
}

func TestTruncatedBodies(t *testing.T) {
	got := make(chan error, 8)
	up := behind(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		got <- err
	})
	p := run(t, limited(t, up.URL, "1000/60s"))
	for _, head := range []string{"Content-Length: 10\r\n\r\n01234", "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n"} {
		conn, err := net.Dial("tcp", p.addr)
		require.NoError(t, err)
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+head)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return up.n.Load() > 0 }, 10*time.Second, time.Millisecond)
		require.NoError(t, conn.Close())
		require.Error(t, <-got, "the upstream learns that it is not all")
		up.n.Store(0)
	}
	require.Empty(t, p.log.lines(`"level":"ERROR"`))
}

func TestLargeHeaders(t *testing.T) {
	up := behind(t, nil)
	p := run(t, limited(t, up.URL, "1000/60s"))
	large := strings.Repeat("x", 1<<20)
	require.Contains(t, p.send(t, "GET / HTTP/1.1\r\nHost: a\r\nX-Large: "+large+"\r\n\r\n"), "HTTP/1.1 431 ")
	require.Contains(t, p.send(t, "GET /"+large+" HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 431 ")
	require.Zero(t, up.n.Load())
	require.Equal(t, 200, p.get(t, "/", "X-Large", large[:48<<10]).StatusCode)

	// The header of an upstream's response may be larger than the header of a request.
	up = behind(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Large", large[:1<<20]) })
	p = run(t, limited(t, up.URL, "1000/60s"))
	require.Equal(t, 200, p.get(t, "/").StatusCode)
}

func TestServerSentEvents(t *testing.T) {
	next, ended := make(chan string), make(chan bool)
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- true }()
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case event := <-next:
				_, _ = io.WriteString(w, "data: "+event+"\n\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	for _, p := range []*running{run(t, limited(t, up.URL, "10/60s")), overTLS(t, limited(t, up.URL, "10/60s"))} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		req, err := http.NewRequestWithContext(ctx, "GET", p.url, nil)
		require.NoError(t, err)
		go func() { next <- "0" }()
		res, err := p.client.Do(req)
		require.NoError(t, err)
		lines := bufio.NewReader(res.Body)
		for i := range 3 {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("data: %d\n", i), line)
			_, err = lines.ReadString('\n')
			require.NoError(t, err)
			if i < 2 {
				next <- fmt.Sprint(i + 1) // the client has read the previous event
			}
		}
		cancel()
		_ = res.Body.Close()
		<-ended // the upstream has seen that the client is gone
		require.Empty(t, p.log.lines(`"level":"ERROR"`))
	}
}

func TestTrailers(t *testing.T) {
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("X-Sum", fmt.Sprint("the request has ", len(r.Trailer), " trailers"))
		w.Header().Set(http.TrailerPrefix+"X-More", "unannounced")
	})
	for _, p := range []*running{run(t, limited(t, up.URL, "10/60s")), overTLS(t, limited(t, up.URL, "10/60s"))} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", p.url, io.MultiReader(strings.NewReader("body")))
		require.NoError(t, err)
		req.Trailer = http.Header{"X-Sum": {"question"}}
		res, err := p.client.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, "body", string(body))
		require.Equal(t, "the request has 0 trailers", res.Trailer.Get("X-Sum"))
		require.Equal(t, "unannounced", res.Trailer.Get("X-More"))
	}
}
