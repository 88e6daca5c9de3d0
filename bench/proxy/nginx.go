package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// nginxConf configures one worker that keeps connections to the upstream. Its arguments are a
// folder, the address, the upstream's address, and the two parts of the limit.
const nginxConf = `
daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr crit;
events { worker_connections 4096; }
http {
	access_log off; keepalive_requests 1000000000;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	upstream behind { server %[3]s; keepalive 512; keepalive_requests 1000000000; }
	%[4]s
	server {
		listen %[2]s;
		location / {
			%[5]s
			proxy_pass http://behind; proxy_http_version 1.1;
			proxy_set_header Connection ""; proxy_set_header Host $http_host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Proto $scheme;
		}
		location = /stub_status { stub_status; }
	}
}
`

// startNginx starts nginx with a configuration of its own.
func startNginx(ctx context.Context, b *bench, s setup) (*running, error) {
	path, err := nginxPath()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.dir, "nginx-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	port, err := testhost.ReservePort()
	if err != nil {
		return nil, err
	}
	zone, use := nginxLimit(s.limit)
	file := filepath.Join(dir, "nginx.conf")
	conf := fmt.Sprintf(nginxConf, dir, port.Addr(), b.behind, zone, use)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	p, err := launch(ctx, b.proxy, port.Addr(), command(path, "-p", dir, "-c", file))
	if err != nil {
		return nil, err
	}
	r := &running{addr: port.Addr(), count: readStubStatus(port.Addr())}
	r.close = func() error { defer port.Release(); return stopFunc(p)() }
	if _, err = r.count(ctx); err == nil { // then there is a worker
		r.pids, err = childPIDs(p.Pid())
	}
	if err != nil {
		_ = r.close()
		return nil, err
	}
	r.pids = append(r.pids, p.Pid())
	return r, nil
}

// nginxLimit returns the two directives of a limit. limit_req is a rate with a burst: for few,
// the rate is one a minute.
func nginxLimit(l limit) (zone, use string) {
	if l == unlimited {
		return "", ""
	}
	rate := fmt.Sprintf("%dr/s", l.n)
	if l.per == time.Minute {
		rate = "1r/m"
	}
	return fmt.Sprintf("limit_req_zone $http_authorization zone=clients:10m rate=%s;", rate),
		fmt.Sprintf("limit_req zone=clients burst=%d nodelay; limit_req_status 429;", l.n-1)
}

func nginxPath() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // which may not be in the PATH
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: nginx is not installed", harness.ErrMissing)
}

// readStubStatus reads nginx's count of requests, without those for the status itself.
func readStubStatus(addr string) func(context.Context) (int, error) {
	own := 0
	return func(ctx context.Context) (int, error) {
		own++
		status, err := fetchText(ctx, "http://"+addr+"/stub_status")
		if err != nil {
			return 0, err
		}
		_, rest, ok := strings.Cut(status, "server accepts handled requests\n")
		var accepts, handled, requests int
		if _, err := fmt.Sscan(rest, &accepts, &handled, &requests); err != nil || !ok {
			return 0, errors.New("stub_status: " + status)
		}
		return requests - own, nil
	}
}
