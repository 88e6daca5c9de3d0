package layer

import (
	"context"
	"errors"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// ShadowOptions configures the layer for shadow rules. Shadow rules count as if they were enforced, but deny nothing,
// so that you can see the effect of a limit before you enforce it. The zero value makes every rule a shadow rule.
//
// The store decides and charges takes, peeks and adds by a shadow rule. The layer returns the store's result with two
// changes: it is always Allowed, and its source is [ratelimit.FromShadow]. Violated reports that the store denied the
// op. If the store fails, or the take is larger than the limit, only Allowed and Limit are set. Counts, refunds and
// resets return the store's result or error.
//
// The enforced rules of a group are decided first. If they allow the group, a second call charges all its shadow
// rules or none, so that the counters are as if all rules were enforced. A list of several groups also costs two
// calls.
//
// Header fields and a policy's results omit shadow rules. A policy that has only shadow rules sends no header fields,
// and its results are those of the shadow rules. Such a result is Allowed, but its Remaining can be 0.
type ShadowOptions struct {
	// Match reports whether op's rule is a shadow rule for op's key. It is called concurrently for every op. Nil means that
	// all rules are shadow rules.
	Match func(op ratelimit.Op) bool
}

// shadowLayer is the layer of ShadowOptions.
type shadowLayer struct {
	inner ratelimit.Store
	o     ShadowOptions
}

// newShadow returns a layer around inner.
func newShadow(inner ratelimit.Store, o ShadowOptions) (*shadowLayer, error) {
	if o.Match == nil {
		o.Match = func(ratelimit.Op) bool { return true }
	}
	return &shadowLayer{inner: inner, o: o}, nil
}

func (s *shadowLayer) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	isShadow := s.o.Match(op)
	res, err := s.inner.DoOne(ctx, op)
	switch {
	case !isShadow, errors.Is(err, ratelimit.ErrOp):
		return res, err
	case canDeny(op.Kind):
		return allowedResult(&op, res, err), nil
	}
	res.Source = ratelimit.FromShadow
	return res, err
}

// canDeny reports whether ops of a kind can be denied. Layers answer such ops without the store.
func canDeny(k ratelimit.Kind) bool {
	return k == ratelimit.Take || k == ratelimit.Peek || k == ratelimit.Add
}

func (s *shadowLayer) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	shadow := make([]bool, len(ops))
	for i := range ops {
		shadow[i] = s.o.Match(ops[i])
	}
	if err := storage.Validate(ops); errors.Is(err, ratelimit.ErrOp) {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	enforced := subset{out: out}
	for from, group := range storage.Groups(ops) {
		enforced.newGroup = true
		for i, op := range group {
			if !shadow[from+i] || !canDeny(op.Kind) {
				enforced.add(op, from+i)
			}
		}
	}
	if err := enforced.do(ctx, s.inner); err != nil {
		return nil, err
	}
	s.runShadowOps(ctx, ops, shadow, out)
	return out, nil
}

// runShadowOps runs the ops of shadow rules in those groups that the enforced rules allow.
func (s *shadowLayer) runShadowOps(ctx context.Context, ops []ratelimit.Op, shadow []bool, out []ratelimit.Result) {
	rest := subset{out: out}
	for from, group := range storage.Groups(ops) {
		rest.newGroup = true
		denied := false
		for i, op := range group {
			denied = denied || !shadow[from+i] && op.Kind == ratelimit.Take && !out[from+i].Allowed
		}
		for i, op := range group {
			switch at := from + i; {
			case !shadow[at]:
			case canDeny(op.Kind) && !denied:
				rest.add(op, at)
			default:
				out[at].Source, out[at].Limit = ratelimit.FromShadow, op.Rule.Limit()
			}
		}
	}
	err := rest.do(ctx, s.inner)
	for _, at := range rest.at {
		out[at] = allowedResult(&ops[at], out[at], err)
	}
}

// allowedResult returns the layer's result of an op for which the store returned res and err.
func allowedResult(op *ratelimit.Op, res ratelimit.Result, err error) ratelimit.Result {
	if err != nil {
		res = ratelimit.Result{Limit: op.Rule.Limit()}
	}
	res.Allowed, res.Source = true, ratelimit.FromShadow
	return res
}
