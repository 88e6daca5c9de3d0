package ratelimit

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// requestState is a policy's state in one request. The request's [Limit]s share it.
type requestState struct {
	policy *boundPolicy
	terms  atomic.Pointer[terms] // nil until something needs them
}

// terms are what a policy comes to for one request. They don't change any more.
type terms struct {
	policy  *boundPolicy
	subject string
	rules   []Rule
	chosen  bool // the rules are RulesFor's
}

// resolve returns the terms, found now if need be. Of those that are found at the same
// moment, the first are the request's.
func (s *requestState) resolve(ctx context.Context, r *http.Request) (*terms, error) {
	if t := s.terms.Load(); t != nil {
		return t, nil
	}
	t, err := s.policy.newTerms(ctx, r)
	if err != nil {
		return nil, err
	}
	s.terms.CompareAndSwap(nil, t)
	return s.terms.Load(), nil
}

// cycleGuard is the context in which terms are found outside of any property.
type cycleGuard struct {
	context.Context
	s *requestState
}

func (g *cycleGuard) Value(key any) any {
	if key == g.s {
		return g
	}
	return g.Context.Value(key)
}

// resolveGuarded is resolve for callers that are no property. A Key that asks its own policy
// is an error; without the guard it would ask for ever.
func (s *requestState) resolveGuarded(ctx context.Context, r *http.Request) (*terms, error) {
	if t := s.terms.Load(); t != nil {
		return t, nil
	}
	if ctx.Value(s) != nil {
		name := "ratelimit." + s.policy.Name + ".key"
		return nil, &lazy.CycleError{Path: []string{name, name}}
	}
	return s.resolve(&cycleGuard{ctx, s}, r)
}

// request returns the HTTP request of ctx. A raw connection has none: a request that has only
// the peer's address stands for it.
func request(ctx context.Context) (*http.Request, error) {
	c := reqctx.From(ctx)
	switch {
	case c == nil || c.Request() == nil && c.RemoteAddr() == "":
		return nil, fmt.Errorf("%w: neither an HTTP request nor a connection", ErrNoKey)
	case c.Request() == nil:
		return &http.Request{RemoteAddr: c.RemoteAddr(), Header: http.Header{}, URL: &url.URL{}}, nil
	default:
		return c.Request(), nil
	}
}

func (p *boundPolicy) newTerms(ctx context.Context, r *http.Request) (*terms, error) {
	subject, err := p.subject(ctx, r)
	if err != nil {
		return nil, err
	}
	rules, err := p.rulesFor(ctx, r)
	if err != nil {
		return nil, err
	}
	chosen := len(p.Rules) == 0 || &rules[0] != &p.Rules[0]
	return &terms{policy: p, subject: subject, rules: rules, chosen: chosen}, nil
}

// op returns what a rule is asked. A rule without a limit takes by counting along, and has
// nothing to say in a peek.
func (t *terms) op(r Rule, kind Kind, n int64) Op {
	if r.Limit() == 0 {
		switch kind {
		case Take:
			kind = Add
		case Peek:
			kind = Count
		}
	}
	return Op{Rule: r, Key: t.subject, N: n, Kind: kind}
}

// ask asks every rule about n units, in one call. The results are in buf if there is
// room for them.
func (t *terms) ask(ctx context.Context, kind Kind, n int64, buf []Result) ([]Result, error) {
	if len(t.rules) == 1 {
		res, err := t.policy.doOne(ctx, t.op(t.rules[0], kind, n))
		return append(buf[:0], res), err
	}
	ops := make([]Op, len(t.rules))
	for i, r := range t.rules {
		ops[i] = t.op(r, kind, n)
	}
	return t.policy.do(ctx, ops)
}

// countIn counts over d by the first rule; zero means its Per.
func (t *terms) countIn(ctx context.Context, d time.Duration) (int64, error) {
	res, err := t.policy.doOne(ctx, Op{Rule: t.rules[0], Key: t.subject, Kind: Count, Interval: d})
	return res.Count, err
}

// sum makes one result of those of the rules: the units that all of them leave, and the
// longest of the waits. Rules without a limit, or that are only tried out, have no say in it.
func (t *terms) sum(results []Result) Result {
	var out Result
	var violated []string
	limited, allowed := false, true
	for i, r := range results {
		allowed = allowed && r.Allowed
		switch {
		case r.unenforced(t.rules[i]):
			continue
		case r.Violated:
			violated = append(violated, t.policy.quota(t.rules[i]))
		}
		if !limited {
			out, limited = r, true
			continue
		}
		out = mergeResults(out, r)
	}
	out.Allowed, out.Count = allowed, results[0].Count
	if !limited {
		out.Receipt, out.Source = results[0].Receipt, results[0].Source
	}
	if !out.Allowed {
		out.denial = &DeniedError{Policies: violated, Limit: out.Limit, RetryAfter: out.RetryAfter}
	}
	return out
}

// mergeResults returns what a and b come to together. The one that waits for longest, or has
// the least left, speaks for both.
func mergeResults(a, b Result) Result {
	out := a
	if b.RetryAfter > a.RetryAfter || b.RetryAfter == a.RetryAfter && b.Remaining < a.Remaining {
		out = b
	}
	out.Allowed, out.Violated = a.Allowed && b.Allowed, a.Violated || b.Violated
	out.Remaining = min(a.Remaining, b.Remaining)
	out.RetryAfter = max(a.RetryAfter, b.RetryAfter)
	out.ResetAfter = max(a.ResetAfter, b.ResetAfter)
	return out
}
