package torture_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session/redisstore"
)

// serveOther serves the sessions' application in another process of the test, which [startOther] starts. Each
// test that calls startOther begins with it.
func serveOther(t *testing.T) {
	testhost.ServeProcess(t, func(arg string, in io.Reader, out io.Writer) {
		master, addrs, _ := strings.Cut(arg, " ")
		c := redis.NewUniversalClient(&redis.UniversalOptions{
			MasterName: master, Addrs: strings.Split(addrs, ","),
			Protocol: 2, DisableIdentity: true, DialTimeout: time.Second,
		})
		defer c.Close()
		srv := httptest.NewServer(newSessionApp(t, c))
		defer srv.Close()
		fmt.Fprintln(out, srv.URL)
		_, _ = io.Copy(io.Discard, in)
	})
}

// startOther starts a process that serves the application, with its sessions in the Redis at addrs, of which
// there are several for a Cluster, or the Sentinel there that knows a master by its name.
func startOther(t *testing.T, master string, addrs ...string) http.Handler {
	p := testhost.StartProcess(t, master+" "+strings.Join(addrs, ","))
	url, err := bufio.NewReader(p.Out).ReadString('\n')
	require.NoError(t, err)
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(func() { c.CloseIdleConnections(); p.End(t) })
	url = strings.TrimSpace(url)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.Path, nil)
		if err != nil {
			panic(err)
		}
		out.Header = r.Header
		var body []byte
		res, err := c.Do(out)
		if err == nil {
			defer res.Body.Close()
			body, err = io.ReadAll(res.Body)
		}
		if err != nil { // the client has left
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header()["Set-Cookie"] = res.Header["Set-Cookie"]
		w.WriteHeader(res.StatusCode)
		_, _ = w.Write(body)
	})
}

// newSessionApp returns an application whose sessions are in a Redis.
func newSessionApp(t *testing.T, c redis.UniversalClient) http.Handler {
	s, err := redisstore.New(c, redisstore.Options{Timeout: timeout})
	require.NoError(t, err)
	return newApp(t, s)
}
