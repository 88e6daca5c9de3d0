package proxy

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// login answers with the status in the query.
func login(w http.ResponseWriter, r *http.Request) {
	status, _ := strconv.Atoi(r.URL.Query().Get("status"))
	w.WriteHeader(status)
}

const failedLogins = `
upstreams: {main: {url: %q}}
rules:
  - {name: all, limit: 100/60s}
  - {name: logins, limit: 3/60s, charge_if: {status: [401, 403]}}
`

// TestChargeIf checks which responses are charged. Wrong passwords are sent concurrently.
func TestChargeIf(t *testing.T) {
	up := behind(t, login)
	p := run(t, parse(t, failedLogins, up.URL))
	for _, want := range []struct {
		status int
		header string
		left   int64
	}{
		{200, `"all";r=99;t=60, "logins";r=3;t=0`, 3},
		{500, `"all";r=98;t=60, "logins";r=3;t=0`, 3},
		{403, `"all";r=97;t=60, "logins";r=2;t=60`, 2},
	} {
		a := p.get(t, "/?status="+strconv.Itoa(want.status))
		require.Equal(t, want.status, a.StatusCode)
		require.Equal(t, want.header, a.Header.Get("RateLimit"))
		require.Equal(t, "100", a.Header.Get("X-RateLimit-MaxRequests"), "the headers describe the other rule")
		require.Equal(t, want.left, p.status(t, "/")["remaining"])
	}
	up.n.Store(0)
	var guesses sync.WaitGroup
	for range 20 {
		guesses.Go(func() { p.ask(t, "POST", "/?status=401", nil) })
	}
	guesses.Wait()
	require.EqualValues(t, 2, up.n.Load())
	a := p.get(t, "/?status=200")
	require.Equal(t, 429, a.StatusCode)
	require.Equal(t, "3", a.Header.Get("X-RateLimit-MaxRequests"))

	require.NoError(t, p.reload(parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: logins, limit: 9/60s}]\n", up.URL)))
	require.Equal(t, `"logins";r=5;t=60`, p.get(t, "/?status=200").Header.Get("RateLimit"), "every response is charged")
}

// TestChargeIfWithoutAResponse checks that the proxy's own answer decides if the upstream can't be reached, and that a
// websocket is charged.
func TestChargeIfWithoutAResponse(t *testing.T) {
	up := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
		_ = conn.Close()
	})
	p := run(t, parse(t, failedLogins, up.URL))
	out := p.send(t, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.Contains(t, out, " 101 ")
	require.EqualValues(t, 2, p.status(t, "/")["remaining"])
	up.Close()
	require.Equal(t, http.StatusBadGateway, p.get(t, "/").StatusCode)
	require.EqualValues(t, 2, p.status(t, "/")["remaining"])
}

// TestChargeIfWithoutRedis checks that the proxy lets requests pass and logs no refund while Redis is down.
func TestChargeIfWithoutRedis(t *testing.T) {
	for _, mode := range []string{config.Open, config.Local} {
		p := run(t, parse(t, `
redis: redis://127.0.0.1:1
upstreams: {main: {url: %q}}
rules: [{name: logins, limit: 100/60s, charge_if: {status: [401]}, on_error: %s}]
`, behind(t, nil).URL, mode))
		for range 30 {
			require.True(t, p.passes(t, "/"))
		}
		require.Empty(t, p.log.lines("the charge stays"))
	}
}

// TestChargeIfAcrossProxies checks that a proxy notices a refund by another proxy, although it denied the key before.
func TestChargeIfAcrossProxies(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	up := behind(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(began)
			<-release
		}
	})
	c := parse(t, "redis: redis://%s\nredis_timeout: 10s\nupstreams: {main: {url: %q}}\nrules: [{name: logins, limit: 1/1h, charge_if: {status: [401]}}]\n",
		testhost.StartRedis(t).Addr, up.URL)
	p, other := run(t, c), run(t, c)
	var slow sync.WaitGroup
	slow.Go(func() { p.ask(t, "GET", "/slow", nil) })
	select {
	case <-began:
	case <-time.After(30 * time.Second):
		require.Fail(t, "the upstream gets no request")
	}
	require.False(t, other.passes(t, "/"))
	close(release)
	slow.Wait()
	require.True(t, other.passes(t, "/"))
}
