package denycache

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/node"
	"github.com/lazyreq/lazyreq/bench/redisinfo"
)

// flexible is a Node process with rate-limiter-flexible.
type flexible struct {
	process *node.Process
	redis   *redis.Client // for questions
	url     string
}

// newFlexible returns what makes a subject; mode is that of flexible.js.
func newFlexible(mode string) func(context.Context, string, *redis.Client) (subject, error) {
	return func(ctx context.Context, addr string, client *redis.Client) (subject, error) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		p, err := node.Start(ctx, "rate-limiter-flexible", "flexible.js", port, mode)
		if err != nil {
			return nil, err
		}
		return &flexible{process: p, redis: client}, nil
	}
}

func (f *flexible) run(_ context.Context, round string, length time.Duration) (sample, error) {
	var a struct {
		Ops       int
		Seconds   float64
		Admitted  []int
		Latencies []float64
	}
	err := f.process.Ask(map[string]any{
		"do": "run", "round": round, "keys": subjects, "callers": inFlight, "ms": length.Milliseconds(),
	}, &a)
	return sample{a.Ops, a.Seconds, a.Admitted, a.Latencies}, err
}

func (f *flexible) startServer(context.Context) (string, error) {
	if f.url != "" {
		return f.url, nil
	}
	var a struct{ Port int }
	if err := f.process.Ask(map[string]any{"do": "serve", "keys": subjects}, &a); err != nil {
		return "", err
	}
	f.url = fmt.Sprintf("http://127.0.0.1:%d", a.Port)
	return f.url, nil
}

// storeCalls counts scripts: each call of the store is one, and others don't run meanwhile.
func (f *flexible) storeCalls(ctx context.Context) (int, error) {
	info, err := redisinfo.Read(ctx, f.redis)
	return info.Sum([]string{"evalsha", "eval"}), err
}

func (f *flexible) cpu() (time.Duration, error) {
	var a struct{ Seconds float64 }
	err := f.process.Ask(map[string]any{"do": "cpu"}, &a)
	return time.Duration(a.Seconds * float64(time.Second)), err
}

func (f *flexible) Close() error { return f.process.Close() }
