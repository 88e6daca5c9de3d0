package main

import (
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestClientsAddressArrives runs nginx and ratelimit-proxy with the example's files. Behind them, it runs the
// application, and then another nginx. It needs Linux, where 127.0.0.2 is also a loopback address.
func TestClientsAddressArrives(t *testing.T) {
	nginx := testenv.LookPath(t, "nginx", "/usr/sbin/nginx")
	front, proxy, app := reserve(t), reserve(t), reserve(t)
	dir := t.TempDir()
	file := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		moved := strings.NewReplacer("127.0.0.1:8080", front.Addr(), "127.0.0.1:8081", proxy.Addr(), "127.0.0.1:9000", app.Addr())
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(moved.Replace(string(text))), 0o600))
		return path
	}
	startNginx := func(conf string, at *testhost.Port) {
		start(t, at, nginx, "-p", dir, "-e", "stderr", "-c", file(conf))
	}
	startNginx("front.conf", front)
	binary := filepath.Join(dir, "ratelimit-proxy")
	// go run caches the linked program. go build does not.
	out, err := exec.CommandContext(t.Context(), "go", "run", "-exec", "cp", "../../cmd/ratelimit-proxy", binary).CombinedOutput()
	require.NoError(t, err, string(out))
	start(t, proxy, binary, "--config", file("proxy.yaml"))

	srv, err := newServer()
	require.NoError(t, err)
	l, err := net.Listen("tcp", app.Addr())
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()

	for range 10 {
		res, body := get(t, "127.0.0.2", front)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, "client: 127.0.0.2, X-Forwarded-For: 127.0.0.2, 127.0.0.1\n", body, "also with a forged address")
		require.Equal(t, `"client";q=10;w=60`, res.Header.Get("RateLimit-Policy"))
	}
	res, _ := get(t, "127.0.0.2", front)
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.NotEmpty(t, res.Header.Get("Retry-After"))
	res, _ = get(t, "127.0.0.2", proxy)
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode, "past nginx, the client is the same, whatever it writes")
	_, body := get(t, "127.0.0.3", proxy)
	require.Equal(t, "client: 127.0.0.3, X-Forwarded-For: 127.0.0.3\n", body, "what an untrusted client writes is removed")
	_, body = get(t, "127.0.0.3", app)
	require.Equal(t, "client: 127.0.0.3, X-Forwarded-For: 192.0.2.9\n", body, "and believed nowhere")

	require.NoError(t, srv.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	startNginx("behind.conf", app)
	_, body = get(t, "127.0.0.4", front)
	require.Equal(t, "client: 127.0.0.4, X-Forwarded-For: 127.0.0.4, 127.0.0.1\n", body)
}

// get sends a request from an address of this machine. It forges X-Forwarded-For and makes up credentials. Neither
// must give the client a new quota.
func get(t *testing.T, from string, to *testhost.Port) (*http.Response, string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+to.Addr()+"/", nil)
	require.NoError(t, err)
	r.Header.Set("X-Forwarded-For", "192.0.2.9")
	r.SetBasicAuth(rand.Text(), "")
	res, err := client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(body)
}

func reserve(t *testing.T) *testhost.Port {
	port, err := testhost.ReservePort()
	require.NoError(t, err)
	t.Cleanup(port.Release)
	return port
}

// start runs a server until the test ends, and returns when it listens.
func start(t *testing.T, at *testhost.Port, program string, args ...string) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "REDIS_URL=")
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // at SIGTERM, nginx also ends its workers
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", at.Addr())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 5*time.Millisecond)
}
