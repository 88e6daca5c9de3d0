package proxy

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// TestReloadUnderLoad checks that a reload loses no request. The requests have no key, and all are in a tier, so a
// request that sees a policy without its Fallback or its RulesFor is answered with a 400 or a 429.
func TestReloadUnderLoad(t *testing.T) {
	a := behind(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a") })
	b := behind(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "b") })
	conf := func(url string, i int) config.Config {
		return parse(t, "upstreams: {main: {url: %q, max_connections: %d}}\nrules: [{name: limit, limit: 1/h, tiers: [{limit: 100000/h}]}]\n", url, 100+i)
	}
	p := run(t, conf(a.URL, 0))
	p.client.Transport.(*http.Transport).MaxConnsPerHost = 8
	const requests, reloads = 2000, 20
	var next atomic.Int64
	var work sync.WaitGroup
	lost := make(chan string, requests)
	for range 8 {
		work.Go(func() {
			for next.Add(1) <= requests {
				res, err := p.client.Get(p.url)
				if err != nil {
					lost <- err.Error()
					continue
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || res.StatusCode != 200 || len(body) != 1 {
					lost <- fmt.Sprint(res.Status, err)
				}
			}
		})
	}
	for i := range reloads {
		at := int64((i + 1) * requests / (reloads + 2))
		require.Eventually(t, func() bool { return next.Load() >= at }, time.Minute, 100*time.Microsecond)
		require.NoError(t, p.reload(conf([]string{b.URL, a.URL}[i%2], i)))
	}
	work.Wait()
	close(lost)
	for text := range lost {
		require.Fail(t, "a request was lost", text)
	}
	require.EqualValues(t, requests, a.n.Load()+b.n.Load())
	require.Greater(t, b.n.Load(), int64(100))
	require.EqualValues(t, requests, p.status(t, "/")["requests"], "the counters stay")
	require.Contains(t, p.metrics(t, "ratelimit_proxy_reloads"), fmt.Sprintf(`{ok="true"} %d`, reloads))
}

func TestInvalidReloadKeepsConfiguration(t *testing.T) {
	up := behind(t, nil)
	p := run(t, limited(t, up.URL, "3/60s"))
	require.True(t, p.passes(t, "/"))
	for _, bad := range []string{
		"{}",
		"upstreams: {main: {url: 'http://127.0.0.1:1'}}\nrules: [{name: limit}]",
		"upstreams: {main: {url: 'http://127.0.0.1:1'}}\nredis: 'http://x'",
		"upstreams: {main: {url: 'http://127.0.0.1:1'}}\nmemory: {max_bytes: 5}",
	} {
		require.Error(t, p.reload(parse(t, "%s\n", bad)))
		require.EqualValues(t, 2, p.status(t, "/")["remaining"], "counters included")
	}
	require.Contains(t, p.metrics(t, "ratelimit_proxy_reloads"), `{ok="false"} 4`)
	require.NoError(t, p.reload(limited(t, up.URL, "5/60s")))
	require.EqualValues(t, 4, p.status(t, "/")["remaining"], "another limit for the same counter")
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.reload(limited(t, up.URL, "5/60s")), errClosed)
}

// TestReloadDuringRequest checks that a request in flight keeps its configuration and its connections during a
// reload.
func TestReloadDuringRequest(t *testing.T) {
	redis := testhost.StartRedis(t)
	release := make(chan struct{})
	up := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = io.WriteString(w, "old")
	})
	p := run(t, parse(t, "redis: redis://%s\nredis_timeout: 20s\nupstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 10/60s}]\n", redis.Addr, up.URL))
	res, err := p.client.Get(p.url)
	require.NoError(t, err)
	had := p.current.Load()
	require.NoError(t, p.reload(limited(t, behind(t, nil).URL, "10/60s")))
	require.Equal(t, "ok", p.get(t, "/").body)
	require.Eventually(t, func() bool {
		if had.acquire() {
			had.release()
			return false
		}
		return true
	}, 10*time.Second, time.Millisecond, "no request begins by the old configuration")
	require.NoError(t, had.store.client.Ping(t.Context()).Err(), "Redis is still in use")
	close(release)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "old", string(body))
	require.Eventually(t, func() bool { return had.store.client.Ping(t.Context()).Err() != nil }, 10*time.Second, time.Millisecond)
}

func TestCloseDuringRequest(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	up := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(w, "ok")
	})
	p := run(t, limited(t, up.URL, "10/60s"))
	got := make(chan string)
	go func() { got <- p.ask(t, http.MethodGet, "/", nil).body }()
	<-arrived
	require.NoError(t, p.Close())
	require.Equal(t, 503, p.get(t, "/").StatusCode)
	close(release)
	require.Equal(t, "ok", <-got)
}

// TestCloseDuringReload checks that Close doesn't wait for a reload whose certificate can't be read yet.
func TestCloseDuringReload(t *testing.T) {
	certs, slow := newCertificates(t), filepath.Join(t.TempDir(), "cert.pem")
	require.NoError(t, syscall.Mkfifo(slow, 0o600))
	up := behind(t, nil)
	p := run(t, limited(t, up.URL, "10/60s"))
	ended := make(chan error)
	go func() {
		ended <- p.reload(parse(t, "listen: [{address: ':0', cert: %q, key: %q}]\nupstreams: {main: {url: %q}}\n", slow, certs.key, up.URL))
	}()
	file, err := os.OpenFile(slow, os.O_WRONLY, 0) // waits until the reload opens the file
	require.NoError(t, err)
	require.NoError(t, p.Close())
	pem, err := os.ReadFile(certs.cert)
	require.NoError(t, err)
	_, err = file.Write(pem)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.ErrorIs(t, <-ended, errClosed)
}

// TestReloadsMakeNoKeys checks that a rule keeps its policy during reloads. A new policy would add properties to all
// later configurations.
func TestReloadsMakeNoKeys(t *testing.T) {
	up := behind(t, nil)
	conf := func(limit int, more string) config.Config {
		return parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: limit, limit: %d/60s%s}]\n", up.URL, limit, more)
	}
	p := run(t, conf(3, ", cost: 2, tiers: [{limit: 9/60s}]"))
	policy := p.current.Load().byName["limit"].policy
	require.NotNil(t, policy.Fallback)
	require.NotNil(t, policy.Cost)
	require.NotNil(t, policy.RulesFor)
	require.Error(t, p.reload(parse(t, "{}\n")))
	for limit := range 3 {
		require.NoError(t, p.reload(conf(limit+1, ", missing: skip")))
		require.Same(t, policy, p.current.Load().byName["limit"].policy)
	}
	require.Nil(t, policy.Fallback)
	require.Nil(t, policy.Cost)
	require.Nil(t, policy.RulesFor)
	require.EqualValues(t, 3, p.status(t, "/", "Authorization", "x")["remaining"])
}
