package layer

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// ShadowOptions are the layer that tries rules out: they count as if they were in force, and deny
// nobody. A limit can so be seen at work before it is one. The zero value tries out every rule.
//
// A take, peek or add by such a rule is asked of the store as any other, and charged if it
// would pass. Its result is the store's, but always Allowed, with
// [ratelimit.FromShadow] as its Source; Violated tells that it would have been denied. If
// the store fails, or the take is larger than the limit, the result says only that it is
// allowed. Counts, refunds and resets are the store's, errors included.
//
// In a group with rules that are in force, those are asked first, and by themselves: what
// is tried out has no influence on them. It is asked, in a second call, only if they
// allow, and all or nothing among themselves, so that the counters are what they would be
// in force. A list of several groups is two calls, too.
//
// In headers and in the results of a Policy, rules that are tried out don't appear. A
// policy that has no others is a meter: its takes pass, and send no fields.
type ShadowOptions struct {
	// Match tells whether the rule of op is only tried out for op's key. Nil means that
	// all are. It is called for every op, from many goroutines.
	Match func(op ratelimit.Op) bool
	// Report, if not nil, gets the takes that would not have passed: with what the store
	// said of them, or with its error. It is called before the take returns.
	Report func(ctx context.Context, op ratelimit.Op, res ratelimit.Result, err error)
}

// shadowLayer is what ShadowOptions configures.
type shadowLayer struct {
	inner ratelimit.Store
	one   func(context.Context, ratelimit.Op) (ratelimit.Result, error)
	o     ShadowOptions

	passed, denied, failed atomic.Uint64
}

// ShadowStats says what rules that are tried out came to since the start.
type ShadowStats struct {
	// Takes that would have passed, that would have been denied, and that the store could
	// not or would not answer: those that are too large, too.
	Passed, Denied, Failed uint64
}

// newShadow returns a layer around inner.
func newShadow(inner ratelimit.Store, o ShadowOptions) (*shadowLayer, error) {
	if o.Match == nil {
		o.Match = func(ratelimit.Op) bool { return true }
	}
	return &shadowLayer{inner: inner, one: storage.DoOne(inner), o: o}, nil
}

// Stats returns what has been counted so far.
func (s *shadowLayer) Stats() ShadowStats {
	return ShadowStats{Passed: s.passed.Load(), Denied: s.denied.Load(), Failed: s.failed.Load()}
}

// DoOne is Do with a list of one.
func (s *shadowLayer) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	if !s.o.Match(op) {
		return s.one(ctx, op)
	}
	res, err := s.one(ctx, op)
	if !decides(op.Kind) || errors.Is(err, ratelimit.ErrOp) {
		return marked(res), err
	}
	return s.allow(ctx, &op, res, err), nil
}

// decides tells whether a group can be denied by an op, or not done because of others.
func decides(k ratelimit.Kind) bool {
	return k == ratelimit.Take || k == ratelimit.Peek || k == ratelimit.Add
}

// Do runs ops as [ratelimit.Store] says.
func (s *shadowLayer) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	tried, some := s.tried(ops)
	if !some {
		return s.inner.Do(ctx, ops)
	}
	if err := storage.Validate(ops); errors.Is(err, ratelimit.ErrOp) {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	inForce := rest{out: out}
	for from, group := range storage.Groups(ops) {
		inForce.apart = true
		for i := range group {
			if !tried[from+i] || !decides(group[i].Kind) {
				inForce.add(group[i], from+i)
			}
		}
	}
	if err := inForce.do(ctx, s.inner); err != nil {
		return nil, err
	}
	s.try(ctx, ops, tried, out)
	return out, nil
}

// tried tells which ops' rules are tried out, and whether there are any.
func (s *shadowLayer) tried(ops []ratelimit.Op) (tried []bool, some bool) {
	for i := range ops {
		if !s.o.Match(ops[i]) {
			continue
		}
		if !some {
			tried, some = make([]bool, len(ops)), true
		}
		tried[i] = true
	}
	return tried, some
}

// try asks what is tried out, in the groups that the rules in force have let pass.
func (s *shadowLayer) try(ctx context.Context, ops []ratelimit.Op, tried []bool, out []ratelimit.Result) {
	asked := rest{out: out}
	for from, group := range storage.Groups(ops) {
		asked.apart = true
		denied := false
		for i := range group {
			denied = denied || !tried[from+i] && isTake(group[i]) && !out[from+i].Allowed
		}
		for i := range group {
			at := from + i
			switch {
			case !tried[at]:
			case !decides(group[i].Kind):
				out[at] = marked(out[at])
			case !denied || group[i].Kind == ratelimit.Peek:
				asked.add(group[i], at)
			default:
				out[at] = marked(ratelimit.Result{Limit: group[i].Rule.Limit()})
			}
		}
	}
	err := asked.do(ctx, s.inner)
	for _, at := range asked.at {
		out[at] = s.allow(ctx, &ops[at], out[at], err)
	}
}

// marked returns the result of a rule that is tried out.
func marked(res ratelimit.Result) ratelimit.Result {
	res.Source = ratelimit.FromShadow
	return res
}

// allow makes what the store said of an op what its caller gets.
func (s *shadowLayer) allow(ctx context.Context, op *ratelimit.Op, res ratelimit.Result, err error) ratelimit.Result {
	if err != nil {
		res = ratelimit.Result{Limit: op.Rule.Limit()}
	}
	if op.Kind == ratelimit.Take {
		s.count(ctx, op, res, err)
	}
	res.Allowed = true
	return marked(res)
}

func (s *shadowLayer) count(ctx context.Context, op *ratelimit.Op, res ratelimit.Result, err error) {
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
