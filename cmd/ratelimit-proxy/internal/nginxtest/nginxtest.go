// Package nginxtest runs nginx for tests.
package nginxtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/internal/testenv"
)

const conf = `
daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 4096; }
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	keepalive_requests 1000000;
	%[2]s
}`

// Start runs nginx until the test ends, and returns when it listens on addr. http is the content of
// its http block. Without nginx, the test is skipped, or fails with CI=true.
func Start(tb testing.TB, addr, http string) {
	tb.Helper()
	dir := tb.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, conf, dir, http), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(testenv.LookPath(tb, "nginx", "/usr/sbin/nginx"), "-p", dir, "-c", file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for began := time.Now(); time.Since(began) < 20*time.Second; {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	tb.Fatalf("nginx does not listen on %s", addr)
}
