package proxy

import (
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

const josh = "Basic am9zaDpkZXZpbnM="

func TestFixedWindow(t *testing.T) {
	up, c := behind(t, nil), newClock()
	p := runAt(t, limited(t, up.URL, "10/60s"), c.Now)
	for i := range 12 {
		a := p.get(t, "/", "Authorization", josh)
		require.Equal(t, "10", a.Header.Get("X-RateLimit-MaxRequests"))
		require.Equal(t, "60", a.Header.Get("X-RateLimit-TTL"))
		require.Equal(t, strconv.FormatInt(c.Now().Add(time.Minute).Unix(), 10), a.Header.Get("X-RateLimit-Reset"))
		if i < 10 {
			require.Equal(t, 200, a.StatusCode)
			require.Equal(t, "ok", a.body)
			require.Equal(t, strconv.Itoa(i+1), a.Header.Get("X-RateLimit-Requests"))
			require.Equal(t, strconv.Itoa(9-i), a.Header.Get("X-RateLimit-Remaining"))
			continue
		}
		require.Equal(t, 429, a.StatusCode)
		require.Equal(t, "0", a.Header.Get("X-RateLimit-Remaining"))
		require.Equal(t, "60", a.Header.Get("Retry-After"))
		require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
		require.Equal(t, `"limit";r=0;t=60`, a.Header.Get("RateLimit"))
		require.Equal(t, `"limit";q=10;w=60`, a.Header.Get("RateLimit-Policy"))
	}
	require.EqualValues(t, 10, up.n.Load())

	c.Advance(44 * time.Second)
	want := map[string]int64{"max_requests": 10, "requests": 10, "remaining": 0, "ttl": 16, "reset": c.Now().Unix() + 16, "denials": 2}
	for range 3 { // requests for the status charge nothing and don't reach the upstream
		require.Equal(t, want, statusIn(t, p.get(t, "/status/"+url.PathEscape(josh))))
		require.Equal(t, want, p.status(t, "/any/path", "Authorization", josh))
	}
	require.EqualValues(t, 10, up.n.Load())
	require.True(t, p.passes(t, "/", "Authorization", "Basic b3RoZXI6"), "another client")

	c.Advance(16 * time.Second)
	require.True(t, p.passes(t, "/", "Authorization", josh))
	require.Equal(t, map[string]int64{"max_requests": 10, "requests": 1, "remaining": 9, "ttl": 60, "reset": c.Now().Unix() + 60},
		p.status(t, "/", "Authorization", josh))
}

func TestTwoProxiesShareTheirLimits(t *testing.T) {
	up, redis := behind(t, nil), testhost.StartRedis(t)
	c := parse(t, "redis: redis://%s\nredis_timeout: 20s\nupstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 10/60s}]\n", redis.Addr, up.URL)
	nodes := [2]*running{run(t, c), run(t, c)}
	for i := range 12 {
		a := nodes[i%2].get(t, "/", "Authorization", josh)
		if i < 10 {
			require.Equal(t, 200, a.StatusCode)
			require.Equal(t, strconv.Itoa(9-i), a.Header.Get("X-RateLimit-Remaining"))
			continue
		}
		require.Equal(t, 429, a.StatusCode)
		require.Equal(t, "0", a.Header.Get("X-RateLimit-Remaining"))
		ttl, err := strconv.Atoi(a.Header.Get("X-RateLimit-TTL"))
		require.NoError(t, err)
		require.True(t, 1 <= ttl && ttl <= 60, "ttl %d", ttl)
	}
	require.EqualValues(t, 10, up.n.Load())
	for _, n := range nodes {
		s := statusIn(t, n.get(t, "/status/"+url.PathEscape(josh)))
		require.EqualValues(t, 10, s["requests"])
		require.LessOrEqual(t, s["ttl"], int64(60))
		require.EqualValues(t, 1, s["denials"], "each knows of its own denials")
	}
	require.EqualValues(t, 10, up.n.Load())
}

// TestNoRaceAtExpiry sends many requests to two proxies while a window ends. In the next window, the proxies together
// must allow exactly the limit.
func TestNoRaceAtExpiry(t *testing.T) {
	var passed int64
	up, redis := behind(t, nil), testhost.StartRedis(t)
	c := parse(t, "redis: redis://%s\nredis_timeout: 20s\nupstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 10/2s}]\n", redis.Addr, up.URL)
	nodes := [2]*running{run(t, c), run(t, c)}
	for i := range 10 {
		require.True(t, nodes[i%2].passes(t, "/", "Authorization", josh))
	}
	var beyond atomic.Int64
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for beyond.Load() < 200 && !t.Failed() {
				if nodes[i%2].admits(t, "/", "Authorization", josh) {
					atomic.AddInt64(&passed, 1)
				} else if atomic.LoadInt64(&passed) > 0 {
					beyond.Add(1)
				}
			}
		})
	}
	work.Wait()
	require.EqualValues(t, 10, passed)
	require.EqualValues(t, 20, up.n.Load())
}
