package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// bench is what all contenders share.
type bench struct {
	plan
	proxy, rest child.CPUs // the contender's processor, and those of all others
	dir         string
	upstream    *child.Process
	behind      string // the upstream's address
	redis       *testhost.RedisProcess

	// Programs that were built, or why they are missing.
	lazyreq, caddy program

	missing error        // why nothing can be measured
	begun   atomic.Int64 // names for clients that were given away
}

type program struct {
	path string
	err  error
}

// openBench builds ratelimit-proxy and starts the upstream and Redis. The caller must close the
// bench even after an error.
func openBench(ctx context.Context, p plan) (b *bench, err error) {
	b = &bench{plan: p}
	all, err := child.AllCPUs()
	if err != nil {
		return b, err
	}
	b.proxy, b.rest = all.Split(1)
	if b.dir, err = os.MkdirTemp("", "bench-proxy-"); err != nil {
		return b, err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { // nginx's worker may be another user
		return b, err
	}
	if b.upstream, b.behind, err = child.StartRole(upstreamRole, nil, b.rest); err != nil {
		return b, err
	}
	err = b.rest.Do(func() (err error) {
		dir := filepath.Join(b.dir, "redis")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		b.redis, err = testhost.RunRedis(dir)
		return err
	})
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		return b, err
	}
	b.lazyreq = b.build(ctx, "ratelimit-proxy", ".", "./cmd/ratelimit-proxy")
	return b, b.lazyreq.err
}

// buildCaddy builds Caddy, which takes minutes the first time.
func (b *bench) buildCaddy(ctx context.Context) { b.caddy = b.build(ctx, "caddy", "bench/caddy", ".") }

func (b *bench) close() {
	if b.redis != nil {
		b.redis.Close()
	}
	if b.upstream != nil {
		_ = b.upstream.Close()
	}
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

// build builds a package of a module in a folder of this tree.
func (b *bench) build(ctx context.Context, name, module, pkg string) program {
	p := program{path: filepath.Join(b.dir, name)}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/lazyreq/lazyreq").Output()
	if err != nil {
		p.err = fmt.Errorf("go list: %w", err)
		return p
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), module)
	out, err := exec.CommandContext(ctx, "go", "build", "-C", dir, "-o", p.path, pkg).CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		p.err = fmt.Errorf("%w: go build %s: %w: %s", harness.ErrMissing, name, err, lines[len(lines)-1])
	}
	return p
}

// countServed returns how many requests the upstream has answered.
func (b *bench) countServed() (n int, err error) {
	line, err := b.upstream.Poll()
	if err == nil {
		_, err = fmt.Sscan(line, &n)
	}
	return n, err
}
