package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

func TestRedisFailure(t *testing.T) {
	t.Parallel()
	up, redis := behind(t, nil), testhost.StartRedis(t)
	p := run(t, parse(t, `
redis: redis://%s
replicas: 2
upstreams: {main: {url: %q}}
rules:
  - {name: open, match: {paths: [/open]}, limit: 4/60s, on_error: open}
  - {name: closed, match: {paths: [/closed]}, limit: 4/60s}
  - {name: local, match: {paths: [/local]}, limit: 4/60s, on_error: local}
`, redis.Addr, up.URL))
	for _, path := range []string{"/open", "/closed", "/local"} {
		require.True(t, p.passes(t, path))
	}
	redis.Kill()
	for range 10 {
		begin := time.Now()
		require.True(t, p.passes(t, "/open"))
		require.Less(t, time.Since(begin), 5*time.Second) // the deadline is 50 ms, on an idle machine
	}
	for range 3 {
		a := p.get(t, "/closed")
		require.Equal(t, 503, a.StatusCode)
		require.Equal(t, "1", a.Header.Get("Retry-After"))
		require.Contains(t, a.body, "temporary-reduced-capacity")
		require.NotContains(t, a.body, redis.Addr)
	}
	passed := 0
	for range 10 {
		if p.passes(t, "/local") {
			passed++
		}
	}
	require.Equal(t, 2, passed, "this process's half of four")
	require.Equal(t, 503, p.get(t, "/closed", "X-RateLimit-Status", "true").StatusCode)

	redis.Restart()
	require.Eventually(t, func() bool { return p.get(t, "/closed").StatusCode == 200 }, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool { return p.get(t, "/local").StatusCode == 200 }, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		return p.passes(t, "/open") && strings.HasSuffix(p.metrics(t, "ratelimit_proxy_store_down"), " 0\n")
	}, 20*time.Second, 50*time.Millisecond)
}

func TestStatusHeaderIsCaseInsensitive(t *testing.T) {
	up := behind(t, nil)
	p := run(t, limited(t, up.URL, "10/60s"))
	for _, name := range []string{"X-RateLimit-Status", "x-ratelimit-status", "X-RATELIMIT-STATUS", "x-RaTeLiMiT-sTaTuS"} {
		for _, value := range []string{"true", "TRUE", "True"} {
			require.EqualValues(t, 10, statusIn(t, p.get(t, "/", name, value))["remaining"], "%s: %s", name, value)
		}
	}
	require.Zero(t, up.n.Load())
	require.Equal(t, "ok", p.get(t, "/", "X-RateLimit-Status", "false").body)
}

func TestMissingKeys(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
trusted_proxies: [127.0.0.1]
upstreams: {main: {url: %q}}
rules:
  - {name: address, match: {paths: [/address]}, key: "{header.X-Key}", limit: 1/60s}
  - {name: reject, match: {paths: [/reject]}, key: "{header.X-Key}{cookie.c}", limit: 1/60s, missing: reject}
  - {name: skip, match: {paths: [/skip]}, key: "{query.key}", limit: 1/60s, missing: skip}
  - {name: both, match: {paths: [/both]}, key: "{header.X-Key}/{query.key}", limit: 1/60s}
`, up.URL))
	for _, empty := range [][]string{nil, {"X-Key", ""}, {"X-Key", "a", "X-Key", "b"}} {
		require.Equal(t, 400, p.get(t, "/reject", empty...).StatusCode)
	}
	require.EqualValues(t, 0, up.n.Load())
	for range 3 {
		require.True(t, p.passes(t, "/skip"), "it isn't limited")
		require.True(t, p.passes(t, "/skip?key=a&key=b"), "there is no telling which it is")
	}
	require.True(t, p.passes(t, "/skip?key=a"))
	require.False(t, p.passes(t, "/skip?key=a"))
	// Requests without the key are counted by their addresses.
	for _, path := range []string{"/address", "/both"} {
		require.True(t, p.passes(t, path, "X-Forwarded-For", "192.0.2.1"))
		require.False(t, p.passes(t, path, "X-Forwarded-For", "192.0.2.1"))
		require.True(t, p.passes(t, path, "X-Forwarded-For", "192.0.2.2"))
		require.True(t, p.passes(t, path+"?key=k", "X-Forwarded-For", "192.0.2.1", "X-Key", "192.0.2.1"), "a key that reads like an address")
	}
}

func TestUpstreamGetsClientAddress(t *testing.T) {
	for _, version := range []int{1, 2} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		up := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			here := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			_, _ = io.WriteString(w, r.RemoteAddr+" "+here.String())
		})}
		go func() {
			_ = up.Serve(&proxyproto.Listener{Listener: l, ConnPolicy: requireHeader([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})})
		}()
		t.Cleanup(func() { _ = up.Close() })
		p := run(t, parse(t, "trusted_proxies: [127.0.0.1]\nupstreams: {main: {url: 'http://%s', proxy_protocol: %d}}\n", l.Addr(), version))

		conn, err := net.Dial("tcp", p.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		answers := bufio.NewReader(conn)
		for range 2 { // over one connection
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			require.NoError(t, err)
			res, err := http.ReadResponse(answers, nil)
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, conn.LocalAddr().String()+" "+p.addr, string(body), "version %d", version)
		}
		require.Equal(t, "192.0.2.7:0 "+p.addr, p.get(t, "/", "X-Forwarded-For", "192.0.2.7").body, "the address that the proxy sent")
		require.Contains(t, p.get(t, "/", "X-Forwarded-For", "2001:db8::7").body, "[2001:db8::7]:0 ")
	}
}

func TestHTTPSSupport(t *testing.T) {
	up := behind(t, nil)
	certs := newCertificates(t)
	c := limited(t, up.URL, "2/60s")
	c.Listen = []config.Listener{{Address: "127.0.0.1:0", Cert: certs.cert, Key: certs.key}}
	p := run(t, c)
	for _, http2 := range []bool{true, false} {
		p.client = certs.client(t, http2)
		a := p.get(t, "/")
		require.Equal(t, 200, a.StatusCode)
		require.Equal(t, http2, a.ProtoMajor == 2)
		require.Equal(t, "https", up.last.Load().Header.Get("X-Forwarded-Proto"))
	}
	require.Equal(t, 429, p.get(t, "/").StatusCode)
}

func TestNoRaceAtExpiry(t *testing.T) {
	require.EqualValues(t, 10, raceAtExpiry(t), "the upstream is not stampeded")
}

// Check and charge are one script: two requests can't get the same last unit.
func TestNoRaceInRedis(t *testing.T) {
	up, redis := behind(t, nil), testhost.StartRedis(t)
	c := parse(t, "redis: redis://%s\nredis_timeout: 20s\nupstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 10/60s}]\n", redis.Addr, up.URL)
	nodes := [2]*running{run(t, c), run(t, c)}
	var passed atomic.Int64
	var work sync.WaitGroup
	for i := range 64 {
		work.Go(func() {
			if nodes[i%2].admits(t, "/", "Authorization", josh) {
				passed.Add(1)
			}
		})
	}
	work.Wait()
	require.EqualValues(t, 10, passed.Load())
	for _, command := range []string{"watch", "multi", "incr"} {
		calls, _ := redis.Calls(command)
		require.Zero(t, calls, command)
	}
}
