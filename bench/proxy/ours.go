package proxy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
)

// patient is a configuration with a long timeout of Redis, so that no request fails on a busy
// machine.
const patient = "redis_timeout: 5s\n"

// startOurs starts ratelimit-proxy with flags alone, but for Redis.
func startOurs(_ context.Context, b *bench, s setup) (*running, error) {
	args := []string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", "http://" + b.behind}
	if s.limit != unlimited {
		args = append(args, "--limit", s.limit.String())
	}
	if s.redis {
		if b.redis == nil {
			return nil, fmt.Errorf("%w: %w", harness.ErrMissing, exec.ErrNotFound)
		}
		file := filepath.Join(b.dir, "patient.yaml")
		if err := os.WriteFile(file, []byte(patient), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--redis", "redis://"+b.redis.Addr, "--config", file)
	}
	p, err := child.Start(command(b.lazyreq.path, args...), b.proxy)
	if err != nil {
		return nil, err
	}
	addr, err := readAddress(p, "listening on http://")
	if err != nil {
		return nil, p.Abort(err)
	}
	admin, err := readAddress(p, "admin on http://")
	if err != nil {
		return nil, p.Abort(err)
	}
	count := func(ctx context.Context) (int, error) {
		return readDecisionCount(ctx, "http://"+admin+"/metrics", s.limit)
	}
	return &running{addr, []int{p.Pid()}, count, stopFunc(p)}, nil
}

// readAddress reads the address from a line of the program.
func readAddress(p *child.Process, prefix string) (string, error) {
	line, err := p.ReadLine()
	if err != nil {
		return "", err
	}
	addr, ok := strings.CutPrefix(line, prefix)
	if !ok {
		return "", fmt.Errorf("printed %q, want %q and an address", line, prefix)
	}
	return addr, nil
}

// readDecisionCount reads the proxy's count of decisions or, without a limit, of responses.
func readDecisionCount(ctx context.Context, url string, l limit) (int, error) {
	names := []string{
		`ratelimit_proxy_decisions_total{rule="limit",decision="allowed"}`,
		`ratelimit_proxy_decisions_total{rule="limit",decision="denied"}`,
	}
	if l == unlimited {
		names = []string{`ratelimit_proxy_responses_total{upstream="upstream",status="2xx"}`}
	}
	metrics, err := fetchText(ctx, url)
	if err != nil {
		return 0, err
	}
	sum := 0 // before the first request, there are no decisions
	for line := range strings.Lines(metrics) {
		for _, name := range names {
			if value, ok := strings.CutPrefix(line, name+" "); ok {
				n := 0
				if _, err := fmt.Sscan(value, &n); err != nil {
					return 0, err
				}
				sum += n
			}
		}
	}
	return sum, nil
}

// startBare starts the bare proxy.
func startBare(_ context.Context, b *bench, _ setup) (*running, error) {
	p, addr, err := child.StartRole(bareRole, b.behind, b.proxy)
	if err != nil {
		return nil, err
	}
	return &running{addr, []int{p.Pid()}, nil, p.Close}, nil
}
