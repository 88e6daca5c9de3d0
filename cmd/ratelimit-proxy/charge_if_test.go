package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestChargeIfWithTwoProxies sends guesses to two proxies that share a Redis. The upstream checks no more guesses at a time
// than the limit, and no more wrong guesses in all.
func TestChargeIfWithTwoProxies(t *testing.T) {
	var checking, wrong atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.LessOrEqual(t, checking.Add(1), int64(3))
		defer checking.Add(-1)
		if r.URL.Path == "/wrong" {
			wrong.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
listen: ['127.0.0.1:0']
redis: redis://%s
redis_timeout: 10s
upstreams: {main: {url: %q}}
rules: [{name: logins, limit: 3/1h, charge_if: {status: [401]}}]
`, testhost.StartRedis(t).Addr, up.URL), 0o600))
	var urls [2]string
	var proxies [2]*process
	for i := range proxies {
		proxies[i] = start(t, nil, "--config", file)
		urls[i] = proxies[i].line(t, "listening on ")
	}
	send := func(path string) map[int]int {
		var mu sync.Mutex
		var guesses sync.WaitGroup
		statuses := map[int]int{}
		for i := range 60 {
			guesses.Go(func() {
				res, err := proxies[i%2].client.Get(urls[i%2] + path)
				if !assert.NoError(t, err) {
					return
				}
				_ = res.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				statuses[res.StatusCode]++
			})
		}
		guesses.Wait()
		return statuses
	}
	got := send("/right")
	require.Positive(t, got[200])
	require.Equal(t, 60, got[200]+got[429], "%v", got)
	require.Equal(t, map[int]int{401: 3, 429: 57}, send("/wrong"))
	require.Equal(t, map[int]int{429: 60}, send("/right"))
	require.EqualValues(t, 3, wrong.Load())
	for _, p := range proxies {
		p.stop(t)
	}
}
