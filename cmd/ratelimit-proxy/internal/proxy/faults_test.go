package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestRedisFailure(t *testing.T) {
	t.Parallel()
	up, redis := behind(t, nil), testhost.StartRedis(t)
	p := run(t, parse(t, `
redis: redis://%s
redis_timeout: 10s
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
		require.Less(t, time.Since(begin), 5*time.Second)
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
	require.Contains(t, p.metrics(t, ""), `ratelimit_proxy_max_consecutive_denials{rule="local"} 8`+"\n")
	require.Contains(t, p.get(t, "/local", "X-RateLimit-Status", "true").body, `"denials":8}`)
	require.Equal(t, 503, p.get(t, "/closed", "X-RateLimit-Status", "true").StatusCode)

	redis.Restart()
	require.Eventually(t, func() bool { return p.get(t, "/closed").StatusCode == 200 }, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool { return p.get(t, "/local").StatusCode == 200 }, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		return p.passes(t, "/open") && strings.HasSuffix(p.metrics(t, "ratelimit_proxy_store_down"), " 0\n")
	}, 20*time.Second, 50*time.Millisecond)
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
	// The rules count requests without the key by the client's address.
	for _, path := range []string{"/address", "/both"} {
		require.True(t, p.passes(t, path, "X-Forwarded-For", "192.0.2.1"))
		require.False(t, p.passes(t, path, "X-Forwarded-For", "192.0.2.1"))
		require.True(t, p.passes(t, path, "X-Forwarded-For", "192.0.2.2"))
		require.True(t, p.passes(t, path+"?key=k", "X-Forwarded-For", "192.0.2.1", "X-Key", "192.0.2.1"), "a key that reads like an address")
	}
}

// TestHeadOfAStream checks that a HEAD request to an endless stream holds up no other request.
func TestHeadOfAStream(t *testing.T) {
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/events" {
			<-r.Context().Done()
		}
	})
	t.Cleanup(up.CloseClientConnections)
	p := run(t, parse(t, `
upstreams: {main: {url: %q, response_timeout: 2s}}
`, up.URL))
	for range 3 {
		require.Equal(t, http.StatusOK, p.do(t, "HEAD", "/events", nil).StatusCode)
		require.Equal(t, http.StatusOK, p.get(t, "/").StatusCode)
	}
}
