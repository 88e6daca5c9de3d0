package main

import (
	"bufio"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// process starts the program as a separate process that uses this Redis.
func process(t *testing.T, redisURL string) *client {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program, "-addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "REDIS_URL="+redisURL, programVariable+"=yes")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		require.NoError(t, cmd.Wait(), "it ends by itself when it is told to")
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); found != "" {
			transport := &http.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			return &client{t, found, http.Client{
				Transport:     transport,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			}}
		}
	}
	require.Fail(t, "the program printed no address")
	return nil
}

func TestTwoProcessesShareTheLimitAndTheLogin(t *testing.T) {
	redis := testhost.StartRedis(t)
	a, b := process(t, "redis://"+redis.Addr), process(t, "redis://"+redis.Addr)

	// Both clients share a cookie jar, like a browser that uses both processes through a load balancer.
	var err error
	a.Jar, err = cookiejar.New(nil)
	require.NoError(t, err)
	b.Jar = a.Jar
	res, body := a.loginForm("ada")
	require.Equal(t, http.StatusSeeOther, res.StatusCode, body)
	_, body = b.do("GET", "/me", "")
	require.JSONEq(t, `{"user":"ada","visits":1}`, body)
	_, body = a.do("GET", "/me", "")
	require.JSONEq(t, `{"user":"ada","visits":2}`, body)

	for i := range 5 {
		res, body = []*client{a, b}[i%2].do("GET", "/search?q=go", "")
		require.Equal(t, http.StatusOK, res.StatusCode, body)
	}
	for _, c := range []*client{a, b} {
		res, body = c.do("GET", "/search?q=go", "")
		problem(t, http.StatusTooManyRequests, res, body)
		_, body = c.do("GET", "/count", "")
		require.JSONEq(t, `{"count":5}`, body)
	}

	res, _ = b.do("POST", "/logout", "")
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	res, body = a.do("GET", "/me", "")
	problem(t, http.StatusUnauthorized, res, body)

	// Without Redis, pages that don't need it still work. The others are answered with an error soon.
	redis.Stop()
	res, _ = a.do("GET", "/fast", "")
	require.Equal(t, http.StatusNoContent, res.StatusCode)
	began := time.Now()
	res, body = a.do("GET", "/search?q=go", "")
	problem(t, http.StatusServiceUnavailable, res, body)
	require.Less(t, time.Since(began), 2*time.Second)
	redis.Restart()
	require.Eventually(t, func() bool {
		res, _ := a.do("GET", "/search?q=go", "")
		return res.StatusCode == http.StatusOK
	}, 3*time.Second, 20*time.Millisecond, "back soon after Redis")
}

func TestRedisURLThatIsNone(t *testing.T) {
	t.Setenv("REDIS_URL", "postgres://somewhere")
	require.ErrorContains(t, run(t.Context(), nil, os.Stdout), "REDIS_URL")
}

func TestStartsWithoutItsRedis(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	c := start(t)
	res, body := c.do("GET", "/search?q=go", "")
	problem(t, http.StatusServiceUnavailable, res, body)
	res, _ = c.do("GET", "/fast", "")
	require.Equal(t, http.StatusNoContent, res.StatusCode)
}
