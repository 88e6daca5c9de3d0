package proxy

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// frame returns an HTTP/2 frame (RFC 9113).
func frame(kind, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return string(binary.BigEndian.AppendUint32(append(head, flags), stream)) + payload
}

const frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7

// answeringHTTP2 starts a server that accepts HTTP/2 without TLS. After its settings, it sends greeting on each
// connection. It answers each request with the frames that answer returns, and counts the requests.
func answeringHTTP2(tb testing.TB, greeting string, answer func(stream uint32) string) (url string, requests *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	requests = &atomic.Int64{}
	var serving sync.WaitGroup
	ended := make(chan struct{})
	tb.Cleanup(func() { _ = l.Close(); close(ended); serving.Wait() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		_, _ = in.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
		_, _ = io.WriteString(conn, frame(frameSettings, 0, 0, "")+greeting)
		for {
			var head [9]byte
			if _, err := io.ReadFull(in, head[:]); err != nil {
				return
			}
			_, _ = in.Discard(int(head[1])<<8 | int(head[2]))
			if head[3] == frameHeaders {
				requests.Add(1)
				_, _ = io.WriteString(conn, answer(binary.BigEndian.Uint32(head[5:])))
			}
		}
	}
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { <-ended; _ = conn.Close() })
			serving.Go(func() { serve(conn) })
		}
	})
	return "http://" + l.Addr().String(), requests
}

// TestUpstreamRefusesOverHTTP2 checks that the proxy gives up after a number of attempts if the upstream refuses a
// request. net/http would continue to repeat some of these requests.
func TestUpstreamRefusesOverHTTP2(t *testing.T) {
	t.Parallel()
	reset := func(code string) func(uint32) string {
		return func(stream uint32) string { return frame(frameReset, 0, stream, "\x00\x00\x00"+code) }
	}
	goAway := frame(frameGoAway, 0, 0, strings.Repeat("\x00", 8))
	for name, c := range map[string]struct {
		greeting string
		answer   func(stream uint32) string
		want     int
	}{
		"GOAWAY":         {"", func(uint32) string { return goAway }, 502},
		"GOAWAY at once": {goAway, func(uint32) string { return goAway }, 502},
		"PROTOCOL_ERROR": {"", reset("\x01"), 502},
		"REFUSED_STREAM": {"", reset("\x07"), 504}, // net/http waits between its attempts, so that response_timeout ends first
		"nothing":        {"", func(uint32) string { return "" }, 504},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := answeringHTTP2(t, c.greeting, c.answer)
			p := run(t, parse(t, "upstreams: {main: {url: %q, http2: cleartext, response_timeout: 2s}}\n", url))
			began := time.Now()
			a := p.get(t, "/")
			require.Equal(t, c.want, a.StatusCode, a.body)
			require.Less(t, time.Since(began), 10*time.Second)
			require.LessOrEqual(t, requests.Load(), int64(maxRefusals))
		})
	}
}

// TestUpstreamSwitchesProtocolsOverHTTP2 checks that a 101 from an upstream over HTTP/2, which the protocol does not
// allow, becomes a 502.
func TestUpstreamSwitchesProtocolsOverHTTP2(t *testing.T) {
	const endStream, endHeaders, status101 = 1, 4, "\x08\x03101" // a literal with an indexed name (RFC 7541)
	url, _ := answeringHTTP2(t, "", func(stream uint32) string {
		return frame(frameHeaders, endHeaders, stream, status101) + frame(frameData, endStream, stream, "x")
	})
	p := run(t, parse(t, "upstreams: {main: {url: %q, http2: cleartext}}\n", url))
	require.Equal(t, 502, p.get(t, "/").StatusCode)
	require.Equal(t, 502, p.do(t, "POST", "/", strings.NewReader("x")).StatusCode)
}

// overHTTP1 starts an upstream that has TLS but no HTTP/2, and returns a proxy in front of it.
func overHTTP1(t *testing.T, options string, handler http.HandlerFunc) *running {
	up := httptest.NewTLSServer(handler)
	t.Cleanup(up.Close)
	return run(t, parse(t, "upstreams: {main: {url: %q, insecure_skip_verify: true%s}}\n", up.URL, options))
}

// TestUpstreamForgetsIdleConnections has an upstream that closes all idle connections. net/http then repeats a
// request once for each of these, which may be more often than maxRefusals.
func TestUpstreamForgetsIdleConnections(t *testing.T) {
	t.Parallel()
	const conns = maxRefusals + 10
	var used sync.Map
	var together sync.WaitGroup
	together.Add(conns)
	p := overHTTP1(t, "", func(_ http.ResponseWriter, r *http.Request) {
		if _, again := used.LoadOrStore(r.RemoteAddr, true); again {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/first" {
			together.Done()
			together.Wait()
		}
	})
	var first sync.WaitGroup
	for range conns {
		first.Go(func() { p.ask(t, "GET", "/first", nil) })
	}
	first.Wait()
	a := p.get(t, "/")
	require.Equal(t, 200, a.StatusCode, a.body)
}

// TestRequestWaitsForUpstreamConnection checks that response_timeout doesn't include the time that a request waits
// for a connection.
func TestRequestWaitsForUpstreamConnection(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	p := overHTTP1(t, ", max_connections: 1, response_timeout: 1s", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			_ = http.NewResponseController(w).Flush()
			close(began)
			<-time.After(1500 * time.Millisecond)
		}
	})
	var first sync.WaitGroup
	first.Go(func() { p.ask(t, "GET", "/first", nil) })
	<-began
	a := p.get(t, "/")
	first.Wait()
	require.Equal(t, 200, a.StatusCode, a.body)
	require.Empty(t, p.log.lines(`"level":"ERROR"`))
}
