package proxy

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestInFlight checks that two proxies on a Redis share a limit of requests in progress, and that a request counts until it
// is answered or its client leaves.
func TestInFlight(t *testing.T) {
	arrived, proceed := make(chan struct{}), make(chan struct{})
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			arrived <- struct{}{}
			select {
			case <-proceed:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "ok")
	})
	conf := parse(t, `
upstreams: {main: {url: %q}}
redis: %q
redis_timeout: 10s
rules: [{name: work, key: "{header.X-Client}", limits: [{in_flight: 1, life: 5m}]}]
`, up.URL, "redis://"+testhost.StartRedis(t).Addr)
	one, two := run(t, conf), run(t, conf)
	for key, leaves := range map[string]bool{"answered": false, "leaves": true} {
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			r, _ := http.NewRequestWithContext(ctx, "GET", one.url+"/slow", nil)
			r.Header.Set("X-Client", key)
			res, err := one.client.Do(r)
			if err == nil {
				_ = res.Body.Close()
			}
			done <- err
		}()
		<-arrived
		denied := two.get(t, "/", "X-Client", key)
		require.Equal(t, http.StatusTooManyRequests, denied.StatusCode)
		require.Equal(t, "1", denied.Header.Get("Retry-After"))
		require.Equal(t, "1", denied.Header.Get("X-RateLimit-TTL"))
		require.Equal(t, `"work";q=1;qu="concurrent-requests"`, denied.Header.Get("RateLimit-Policy"))
		require.True(t, two.passes(t, "/", "X-Client", "other "+key))
		if leaves {
			leave()
			require.ErrorIs(t, <-done, context.Canceled)
		} else {
			proceed <- struct{}{}
			require.NoError(t, <-done)
		}
		require.Eventually(t, func() bool { return two.passes(t, "/", "X-Client", key) }, 20*time.Second, time.Millisecond)
		leave()
	}
}
