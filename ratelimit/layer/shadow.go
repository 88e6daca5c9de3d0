package layer

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// ShadowOptions configure the layer of shadow rules: they count as if they were enforced, and
// deny nothing. So a limit's effect shows before it is enforced. The zero value makes every
// rule a shadow rule.
//
// The store decides a take, peek or add by a shadow rule as any other, and charges it if it
// would pass. The result is the store's, but always Allowed and from [ratelimit.FromShadow];
// Violated reports that it would have been denied. If the store fails, or the take is larger
// than the limit, only Allowed is set. Counts, refunds and resets are the store's, including
// errors.
//
// In a group, enforced rules are decided first and by themselves, so that shadow rules have no
// influence on them. If they allow, a second call decides the shadow rules, all or nothing,
// so that counters are what they would be if all rules were enforced. A list of several
// groups is two calls, too.
//
// Header fields and a policy's results leave shadow rules out. A policy with no other rules
// is a meter: its takes pass, and send no header fields.
type ShadowOptions struct {
	// Match reports whether op's rule is a shadow rule for op's key. It is called for every
	// op, concurrently. Nil means that all are.
	Match func(op ratelimit.Op) bool
	// Report, if not nil, is called for each take that would not have passed, with the store's
	// result or error, before the take returns.
	Report func(ctx context.Context, op ratelimit.Op, res ratelimit.Result, err error)
}

// shadowLayer is the layer of ShadowOptions.
type shadowLayer struct {
	inner ratelimit.Store
	o     ShadowOptions

	passed, denied, failed atomic.Uint64
}

// ShadowStats count the takes by shadow rules.
type ShadowStats struct {
	// Takes that would have passed, takes that would have been denied, and takes for which the
	// store returned an error, such as too large ones.
	Passed, Denied, Failed uint64
}

// newShadow returns a layer around inner.
func newShadow(inner ratelimit.Store, o ShadowOptions) (*shadowLayer, error) {
	if o.Match == nil {
		o.Match = func(ratelimit.Op) bool { return true }
	}
	return &shadowLayer{inner: inner, o: o}, nil
}

// Stats returns the numbers.
func (s *shadowLayer) Stats() ShadowStats {
	return ShadowStats{Passed: s.passed.Load(), Denied: s.denied.Load(), Failed: s.failed.Load()}
}

// DoOne is Do with a list of one.
func (s *shadowLayer) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	if !s.o.Match(op) {
		return s.inner.DoOne(ctx, op)
	}
	res, err := s.inner.DoOne(ctx, op)
	if !canDeny(op.Kind) || errors.Is(err, ratelimit.ErrOp) {
		return shadowResult(res), err
	}
	return s.allowedResult(ctx, &op, res, err), nil
}

// canDeny reports whether an op can deny its group, or is not done if another op does.
func canDeny(k ratelimit.Kind) bool {
	return k == ratelimit.Take || k == ratelimit.Peek || k == ratelimit.Add
}

// Do implements [ratelimit.Store].
func (s *shadowLayer) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	shadow, found := s.findShadowOps(ops)
	if !found {
		return s.inner.Do(ctx, ops)
	}
	if err := storage.Validate(ops); errors.Is(err, ratelimit.ErrOp) {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	enforced := subset{out: out}
	for from, group := range storage.Groups(ops) {
		enforced.beginGroup()
		for i := range group {
			if !shadow[from+i] || !canDeny(group[i].Kind) {
				enforced.add(group[i], from+i)
			}
		}
	}
	if err := enforced.do(ctx, s.inner); err != nil {
		return nil, err
	}
	s.runShadowOps(ctx, ops, shadow, out)
	return out, nil
}

// findShadowOps returns which ops have shadow rules, and whether any has.
func (s *shadowLayer) findShadowOps(ops []ratelimit.Op) (shadow []bool, found bool) {
	for i := range ops {
		if !s.o.Match(ops[i]) {
			continue
		}
		if !found {
			shadow, found = make([]bool, len(ops)), true
		}
		shadow[i] = true
	}
	return shadow, found
}

// runShadowOps runs the ops of shadow rules in those groups that the enforced rules allow.
func (s *shadowLayer) runShadowOps(ctx context.Context, ops []ratelimit.Op, shadow []bool, out []ratelimit.Result) {
	rest := subset{out: out}
	for from, group := range storage.Groups(ops) {
		rest.beginGroup()
		denied := false
		for i := range group {
			denied = denied || !shadow[from+i] && isTake(group[i]) && !out[from+i].Allowed
		}
		for i := range group {
			at := from + i
			switch {
			case !shadow[at]:
			case !canDeny(group[i].Kind):
				out[at] = shadowResult(out[at])
			case !denied || group[i].Kind == ratelimit.Peek:
				rest.add(group[i], at)
			default:
				out[at] = shadowResult(ratelimit.Result{Limit: group[i].Rule.Limit()})
			}
		}
	}
	err := rest.do(ctx, s.inner)
	for _, at := range rest.at {
		out[at] = s.allowedResult(ctx, &ops[at], out[at], err)
	}
}

func shadowResult(res ratelimit.Result) ratelimit.Result {
	res.Source = ratelimit.FromShadow
	return res
}

// allowedResult returns the caller's result of an op, given the store's.
func (s *shadowLayer) allowedResult(ctx context.Context, op *ratelimit.Op, res ratelimit.Result, err error) ratelimit.Result {
	if err != nil {
		res = ratelimit.Result{Limit: op.Rule.Limit()}
	}
	if op.Kind == ratelimit.Take {
		s.countDecision(ctx, op, res, err)
	}
	res.Allowed = true
	return shadowResult(res)
}

func (s *shadowLayer) countDecision(ctx context.Context, op *ratelimit.Op, res ratelimit.Result, err error) {
	switch {
	case err != nil:
		s.failed.Add(1)
	case res.Allowed:
		s.passed.Add(1)
		return
	default:
		s.denied.Add(1)
	}
	if s.o.Report != nil {
		s.o.Report(ctx, *op, res, err)
	}
}
