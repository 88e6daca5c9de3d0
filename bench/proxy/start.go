package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
)

// asking uses a new connection for each request, so that none is open when a proxy ends.
var asking = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}

// requestPage requests the page from a proxy as the named client.
func requestPage(ctx context.Context, addr, authorization string, want int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", authorization)
	res, err := asking.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != want || want == http.StatusOK && string(body) != string(page) {
		return fmt.Errorf("%w: %s with %d bytes, want %d", harness.ErrWrong, res.Status, len(body), want)
	}
	return nil
}

// fetchText returns the response body of a GET.
func fetchText(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := asking.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	}
	return string(body), err
}

// command returns a command without the environment variables that configure proxies.
func command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REDIS_URL=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// launch starts a program that listens at addr, and waits until it does.
func launch(ctx context.Context, on child.CPUs, addr string, cmd *exec.Cmd) (*child.Process, error) {
	p, err := child.Start(cmd, on)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(20 * time.Second)
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case <-tick.C:
		case <-timeout:
			return nil, p.Abort(err)
		case <-ctx.Done():
			return nil, p.Abort(context.Cause(ctx))
		}
	}
}

// stopFunc returns a function that stops a process gracefully.
func stopFunc(p *child.Process) func() error {
	return func() error { return p.Stop(syscall.SIGTERM) }
}
