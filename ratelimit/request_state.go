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
	terms  atomic.Pointer[requestTerms] // nil until something needs them
}

// requestTerms are what a policy comes to for one request. They don't change any more.
type requestTerms struct {
	policy  *boundPolicy
	subject string
	rules   []Rule
	chosen  bool // the rules are RulesFor's
}

// resolve returns the terms, found now if need be. Of those that are found at the same
// moment, the first are the request's.
func (s *requestState) resolve(ctx context.Context, r *http.Request) (*requestTerms, error) {
	if t := s.terms.Load(); t != nil {
		return t, nil
	}
	p := s.policy
	subject, err := p.subject(ctx, r)
	if err != nil {
		return nil, err
	}
	rules, err := p.rulesFor(ctx, r)
	if err != nil {
		return nil, err
	}
	chosen := len(p.Rules) == 0 || &rules[0] != &p.Rules[0]
	s.terms.CompareAndSwap(nil, &requestTerms{policy: p, subject: subject, rules: rules, chosen: chosen})
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
// is an error; without the guard it would recurse for ever.
func (s *requestState) resolveGuarded(ctx context.Context, r *http.Request) (*requestTerms, error) {
	if t := s.terms.Load(); t != nil {
		return t, nil
	}
	if ctx.Value(s) != nil {
		name := "ratelimit." + s.policy.Name + ".key"
		return nil, &lazy.CycleError{Path: []string{name, name}}
	}
	return s.resolve(&cycleGuard{ctx, s}, r)
}

// requestOf returns the HTTP request of ctx. A raw connection has none: a request that has only
// the peer's address stands for it.
func requestOf(ctx context.Context) (*http.Request, error) {
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

// newOp returns what a rule is asked. A rule without a limit takes by counting along, and peeks by
// counting.
func (t *requestTerms) newOp(r Rule, kind Kind, n int64) Op {
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

// run runs an op of each rule, in one call, except that rules without a limit count what the
// others let through. The results are in buf if there is room for them.
func (t *requestTerms) run(ctx context.Context, kind Kind, n int64, buf []Result) ([]Result, error) {
	if len(t.rules) == 1 {
		res, err := t.policy.doOne(ctx, t.newOp(t.rules[0], kind, n))
		return append(buf[:0], res), err
	}
	ops := make([]Op, len(t.rules))
	takes, adds := false, false
	for i, r := range t.rules {
		ops[i] = t.newOp(r, kind, n)
		takes = takes || ops[i].Kind == Take
		adds = adds || ops[i].Kind == Add
	}
	if takes && adds {
		return t.takeThenAdd(ctx, ops)
	}
	return t.policy.do(ctx, ops)
}

// takeThenAdd runs the takes of ops, and then, if all are allowed, the adds.
func (t *requestTerms) takeThenAdd(ctx context.Context, ops []Op) ([]Result, error) {
	results, allowed := make([]Result, len(ops)), true
	for _, kind := range [...]Kind{Take, Add} {
		if !allowed {
			break
		}
		var part []Op
		var at []int // indexes of part in ops
		for i, op := range ops {
			if op.Kind == kind {
				part, at = append(part, op), append(at, i)
			}
		}
		out, err := t.policy.do(ctx, part)
		if err != nil {
			return nil, err
		}
		for i, res := range out {
			results[at[i]] = res
			allowed = allowed && res.Allowed
		}
	}
	return results, nil
}

// countIn counts over d by the first rule; zero means its Per.
func (t *requestTerms) countIn(ctx context.Context, d time.Duration) (int64, error) {
	res, err := t.policy.doOne(ctx, Op{Rule: t.rules[0], Key: t.subject, Kind: Count, Interval: d})
	return res.Count, err
}

// merge makes one result of those of the rules.
func (t *requestTerms) merge(results []Result) Result {
	sum := mergeResults(t.rules, results)
	if sum.Allowed && len(results) == 1 {
		return sum
	}
	sum.more = &details{denied: DeniedError{Limit: sum.Limit, RetryAfter: sum.RetryAfter}}
	if len(results) > 1 {
		sum.more.each = results
	}
	for i, r := range results {
		if r.Violated && !r.isUnenforced(t.rules[i]) {
			sum.more.denied.Policies = append(sum.more.denied.Policies, t.policy.quotaName(t.rules[i], len(t.rules) == 1))
		}
	}
	return sum
}
