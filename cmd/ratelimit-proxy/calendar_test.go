package main

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestCalendarInTwoProcesses shares a limit per month between proxies on machines with different time zones.
func TestCalendarInTwoProcesses(t *testing.T) {
	redis, up := testhost.StartRedis(t), behind(t, "hello")
	var urls []string
	for _, zone := range []string{"Asia/Tokyo", "America/New_York"} {
		p := start(t, []string{"TZ=" + zone}, "--redis", "redis://"+redis.Addr, "--listen", "127.0.0.1:0", "--upstream", up, "--limit", "3/month in Europe/Berlin")
		defer p.stop(t)
		urls = append(urls, p.line(t, "listening on "))
	}
	var passed atomic.Int64
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			res, err := http.Get(urls[i%2])
			if !assert.NoError(t, err) {
				return
			}
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				passed.Add(1)
			}
		})
	}
	clients.Wait()
	require.EqualValues(t, 3, passed.Load())
	keys := redis.Client(nil).Keys(t.Context(), "*").Val()
	require.Len(t, keys, 1)
	require.Contains(t, keys[0], ":calendar:month/Europe/Berlin")
}
