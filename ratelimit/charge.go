package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// charge is what a request's take came to.
type charge struct {
	results []Result // one for each of the policy's rules
	sum     Result
}

func (p *limited) resolveTake(ctx context.Context) (*charge, error) {
	results, err := p.askAll(ctx, Take)
	if err != nil {
		return nil, err
	}
	// A count from before is the past. This fails only if the request is over.
	_ = p.keys.count.Invalidate(ctx)
	return &charge{results: results, sum: p.combine(results)}, nil
}

// resolveRefund gives back what the request was charged, which its caller has looked up.
func (p *limited) resolveRefund(ctx context.Context) ([]Result, error) {
	key, err := p.keys.key.Get(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.keys.take.Get(ctx)
	if err != nil {
		return nil, err
	}
	ops := make([]Op, len(p.Rules))
	for i, r := range p.Rules {
		ops[i] = Op{Rule: r, Key: key, Kind: Refund, Receipt: c.results[i].Receipt}
	}
	results, err := p.do(ctx, ops)
	_ = p.keys.count.Invalidate(ctx)
	return results, err
}

// commit tells in the response's header what the request's take came to.
func (p *limited) commit(ctx context.Context, c *charge, h http.Header) error {
	results, sum := c.results, c.sum
	if back, err, ok := p.keys.refund.Peek(ctx); ok && err == nil {
		results, sum = back, p.combine(back)
	}
	p.writeHeader(h, results, sum)
	if !c.sum.Allowed {
		writeRetryAfter(h, c.sum.denial)
	}
	return nil
}

// askAll asks every rule about the request's cost.
func (p *limited) askAll(ctx context.Context, kind Kind) ([]Result, error) {
	key, err := p.keys.key.Get(ctx)
	if err != nil {
		return nil, err
	}
	r, err := request(ctx)
	if err != nil {
		return nil, err
	}
	n, err := p.cost(ctx, r)
	if err != nil {
		return nil, err
	}
	ops := make([]Op, len(p.Rules))
	for i, r := range p.Rules {
		ops[i] = Op{Rule: r, Key: key, N: n, Kind: kind}
	}
	return p.do(ctx, ops)
}

// countIn counts over d by the first rule; zero means its Per.
func (p *limited) countIn(ctx context.Context, d time.Duration) (int64, error) {
	key, err := p.keys.key.Get(ctx)
	if err != nil {
		return 0, err
	}
	results, err := p.do(ctx, []Op{{Rule: p.Rules[0], Key: key, Kind: Count, Interval: d}})
	if err != nil {
		return 0, err
	}
	return results[0].Count, nil
}

// do tells a wrong question, a request that ended and a store that failed apart.
func (p *limited) do(ctx context.Context, ops []Op) ([]Result, error) {
	if err := Validate(ops); err != nil {
		return nil, fmt.Errorf("policy %q: %w", p.Name, err)
	}
	results, err := p.store.Do(ctx, ops)
	switch {
	case err == nil:
		return results, nil
	case ctx.Err() != nil:
		return nil, err
	case !errors.Is(err, ErrStore):
		err = fmt.Errorf("%w: %w", ErrStore, err)
	}
	return nil, fmt.Errorf("policy %q: %w", p.Name, err)
}
