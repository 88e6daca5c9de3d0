package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/nginxtest"
	"github.com/lazyreq/lazyreq/internal/doccheck"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// documentedNginx starts nginx with the configuration in docs/deploy.md. It returns nginx's URL and the addresses of
// the proxies behind it.
func documentedNginx(t *testing.T) (url string, proxies []string) {
	blocks, err := doccheck.Blocks("../../docs/deploy.md")
	require.NoError(t, err)
	var conf []string
	for _, b := range blocks {
		if b.Lang == "nginx" {
			conf = append(conf, b.Text)
		}
	}
	require.Len(t, conf, 1)
	var moves, addrs []string
	for _, documented := range []string{"127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.1:8082"} {
		port, err := testhost.ReservePort()
		require.NoError(t, err)
		t.Cleanup(port.Release)
		require.Equal(t, 1, strings.Count(conf[0], documented))
		moves, addrs = append(moves, documented, port.Addr()), append(addrs, port.Addr())
	}
	nginxtest.Start(t, addrs[0], strings.NewReplacer(moves...).Replace(conf[0]))
	return "http://" + addrs[0], addrs[1:]
}

// post sends POST requests until stop is closed. It counts the responses, which must all be 200.
func post(t *testing.T, url string, answered *atomic.Int64, stop <-chan struct{}) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-stop:
			return
		default:
		}
		res, err := client.Post(url, "text/plain", strings.NewReader("body"))
		if !assert.NoError(t, err) {
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		assert.Equal(t, http.StatusOK, res.StatusCode)
		answered.Add(1)
	}
}

// TestRollingRestart restarts two proxies behind nginx, one after the other, as docs/deploy.md describes. No request
// may be lost.
func TestRollingRestart(t *testing.T) {
	url, addrs := documentedNginx(t)
	up := behind(t, "ok")
	begin := func(addr string) *process {
		p := start(t, nil, "--listen", addr, "--upstream", up)
		require.Equal(t, "http://"+addr, p.line(t, "listening on "))
		return p
	}
	proxies := []*process{begin(addrs[0]), begin(addrs[1])}
	var answered atomic.Int64
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() { post(t, url, &answered, stop) })
	}
	for i := range 8 {
		enough := answered.Load() + 300
		require.Eventually(t, func() bool { return answered.Load() > enough }, time.Minute, time.Millisecond)
		proxies[i%2].stop(t)
		proxies[i%2] = begin(addrs[i%2])
	}
	close(stop)
	clients.Wait()
	t.Log(fmt.Sprint(answered.Load(), " requests"))
}
