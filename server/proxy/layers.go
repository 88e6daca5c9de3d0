package proxy

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
)

// layers returns the store that the rules of a configuration ask.
func (g *generation) layers() (ratelimit.Store, error) {
	store := g.store.base
	if g.store.client != nil {
		by := &byRule{ruleOf: g.ruleOf, chains: map[*rule]*chain{}}
		for _, r := range g.rules {
			c, err := g.store.answering(r.OnError)
			if err != nil {
				return nil, err
			}
			by.chains[r] = c
		}
		store = by
	}
	if !slices.ContainsFunc(g.rules, func(r *rule) bool { return r.Shadow }) {
		return store, nil
	}
	return layer.New(store, layer.Options{Shadow: &layer.ShadowOptions{
		Match:  func(op ratelimit.Op) bool { return g.ruleOf(op).Shadow },
		Report: g.reportShadow,
	}})
}

// byRule has each rule's ops answered by its chain. All ops of a call are one rule's.
type byRule struct {
	ruleOf func(ratelimit.Op) *rule
	chains map[*rule]*chain
}

// Do runs ops as [ratelimit.Store] says.
func (b *byRule) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	c := b.chains[b.ruleOf(ops[0])]
	out, err := c.layers.Do(ctx, ops)
	if err != nil {
		return nil, c.failed(ops[0].Kind, err)
	}
	for i := range out {
		c.stoodIn(ops[i].Kind, &out[i])
	}
	return out, nil
}

// DoOne is Do with a list of one.
func (b *byRule) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	c := b.chains[b.ruleOf(op)]
	res, err := c.layers.DoOne(ctx, op)
	if err != nil {
		return ratelimit.Result{}, c.failed(op.Kind, err)
	}
	c.stoodIn(op.Kind, &res)
	return res, nil
}

// failed counts a take that nothing has stood in for.
func (c *chain) failed(kind ratelimit.Kind, err error) error {
	var unavailable *layer.UnavailableError
	if kind == ratelimit.Take && errors.As(err, &unavailable) {
		c.outage.count(closed)
	}
	return err
}

// stoodIn counts a take that was answered without the store. An open rule isn't in force
// then: as of one that is only tried out, nothing is told of its quota, which nobody knows.
func (c *chain) stoodIn(kind ratelimit.Kind, res *ratelimit.Result) {
	if res.Source != ratelimit.FromFailover {
		return
	}
	outcome := c.onError
	if outcome == local && res.Allowed {
		outcome = "local_allowed"
	} else if outcome == local {
		outcome = "local_denied"
	}
	if kind == ratelimit.Take {
		c.outage.count(outcome)
	}
	if c.onError == open {
		res.Source = ratelimit.FromShadow
	}
}

// reportShadow counts what a rule that is tried out would have denied, and logs it, at most
// once in a second for each rule: clients decide how often it happens.
func (g *generation) reportShadow(ctx context.Context, op ratelimit.Op, res ratelimit.Result, err error) {
	r := g.ruleOf(op)
	if err != nil {
		r.counters.failed.Inc()
		return
	}
	now := g.p.now()
	n := g.p.beyond.deny(op.Key, res.ResetAfter, now)
	r.counters.shadowed.Inc()
	r.counters.wentBeyond(n)
	if last := r.reported.Load(); now.Unix() != last && r.reported.CompareAndSwap(last, now.Unix()) {
		g.p.log.InfoContext(ctx, "a rule that is tried out would have denied a request",
			slog.String("rule", r.Name), slog.String("key", op.Key), slog.Int64("beyond", n))
	}
}
