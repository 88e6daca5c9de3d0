package proxy

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/load"
)

const connections = 64

// instance is a contender in a case.
type instance struct {
	b     *bench
	proxy *running
	limit limit
}

// startContender starts a contender after it has checked, with another process, that it limits.
func (b *bench) startContender(ctx context.Context, c contender, s setup) (harness.Instance, error) {
	if b.missing != nil {
		return nil, b.missing
	}
	if s.limit != unlimited {
		strict := s
		strict.limit = few
		p, err := c.start(ctx, b, strict)
		if err != nil {
			return nil, err
		}
		err = b.checkLimit(ctx, p)
		_ = p.close()
		if err != nil {
			return nil, err
		}
	}
	p, err := c.start(ctx, b, s)
	if err != nil {
		return nil, err
	}
	return &instance{b, p, s.limit}, nil
}

// checkLimit checks that a proxy allows exactly the limit of a client, and then another client.
func (b *bench) checkLimit(ctx context.Context, p *running) error {
	one, other := b.newClientPrefix(), b.newClientPrefix()
	for i := range few.n + 2 {
		want := 200
		if i >= few.n {
			want = 429
		}
		if err := requestPage(ctx, p.addr, authorizationHeader(one, 0), want); err != nil {
			return fmt.Errorf("request %d with a limit of %d: %w", i+1, few.n, err)
		}
	}
	return requestPage(ctx, p.addr, authorizationHeader(other, 0), 200)
}

// newClientPrefix returns a new, unique name for clients.
func (b *bench) newClientPrefix() string { return "round-" + strconv.FormatInt(b.begun.Add(1), 10) }

// counts are what the upstream and the proxy have counted.
type counts struct{ upstream, proxy int }

func (i *instance) counts(ctx context.Context) (c counts, err error) {
	if c.upstream, err = i.b.countServed(); err != nil || i.proxy.count == nil {
		return c, err
	}
	c.proxy, err = i.proxy.count(ctx)
	return c, err
}

// Round sends the load once.
func (i *instance) Round(ctx context.Context) (map[string]float64, error) {
	before, err := i.counts(ctx)
	if err != nil {
		return nil, err
	}
	t := task{
		Options: load.Options{Addr: i.proxy.addr, Conns: connections, WarmUp: i.b.warmUp, Measure: i.b.measure},
		Clients: i.b.newClientPrefix(),
		Pids:    i.proxy.pids,
	}
	if i.limit == few {
		t.Passes = few.n
	}
	res, err := i.send(ctx, t)
	if err != nil {
		return nil, err
	}
	after, err := i.counts(ctx)
	if err != nil {
		return nil, err
	}
	if err := i.compareCounts(res, before, after); err != nil {
		return nil, err
	}
	return map[string]float64{
		processor:  float64(res.Used) / float64(time.Microsecond) / float64(res.Answered),
		throughput: res.Throughput,
		p50:        milliseconds(res.P50),
		p99:        milliseconds(res.P99),
		busy:       100 * float64(res.Used) / float64(res.Took),
	}, nil
}

// compareCounts compares what the load, the upstream and the proxy have counted.
func (i *instance) compareCounts(res result, before, after counts) error {
	if res.Wrong != "" {
		return fmt.Errorf("%w: after %d requests: %s", harness.ErrWrong, res.Requests, res.Wrong)
	}
	if n := after.upstream - before.upstream; n != res.Passed {
		return fmt.Errorf("%w: the upstream has answered %d requests, want %d", harness.ErrWrong, n, res.Passed)
	}
	if n := after.proxy - before.proxy; i.proxy.count != nil && n != res.Requests {
		return fmt.Errorf("%w: the proxy has counted %d requests, want %d", harness.ErrWrong, n, res.Requests)
	}
	return nil
}

// send runs the load in a process of its own.
func (i *instance) send(ctx context.Context, t task) (res result, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.WarmUp+t.Measure+20*time.Second)
	defer cancel()
	return res, child.Run(ctx, i.b.rest, loadRole, t, &res)
}

// Close ends the proxy.
func (i *instance) Close() error { return i.proxy.close() }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
