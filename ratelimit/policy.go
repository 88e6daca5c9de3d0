package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Policy says what requests are counted by and how much they may.
type Policy struct {
	// Name is part of property names, headers and keys in the store: letters, digits,
	// "-" and "_", at most 64 of them.
	Name string
	// Rules all have to allow a request; it is charged to all or to none. Each needs
	// a limit. If there are several, they have different names, and all but one a
	// name that isn't empty.
	Rules []Rule
	// Key tells what a request is counted by. It must be chosen: see [ByIP].
	Key KeyFunc
	// Fallback is asked when Key finds nothing (ErrNoKey). Nil means that such a
	// request is an error, which becomes a 400.
	Fallback KeyFunc
	// Cost tells how many units a request costs, at least 1. Nil means 1. More than
	// a limit is ErrTooLarge.
	Cost func(ctx context.Context, r *http.Request) (int64, error)
	// XHeaders also sends X-RateLimit-Limit, -Remaining and -Reset (in seconds from
	// now). If several policies do, they are those of the one with the least left.
	XHeaders bool
}

// check returns what is wrong with the policy itself.
func (p Policy) check() error {
	switch {
	case !validName(p.Name):
		return fmt.Errorf("ratelimit: Policy.Name is %q, want %s", p.Name, nameRule)
	case len(p.Rules) == 0:
		return fmt.Errorf("ratelimit: policy %q: Rules is empty", p.Name)
	case p.Key == nil:
		return fmt.Errorf("ratelimit: policy %q: Key is nil", p.Name)
	}
	seen := map[string]bool{}
	for i, r := range p.Rules {
		switch {
		case r == Rule{}:
			return fmt.Errorf("ratelimit: policy %q: Rules[%d] is the zero Rule", p.Name, i)
		case r.limit == 0:
			return fmt.Errorf("ratelimit: policy %q: Rules[%d] has no limit: %v", p.Name, i, r)
		case seen[r.name]:
			return fmt.Errorf("ratelimit: policy %q: Rules[%d] has the same name as another, %q", p.Name, i, r.name)
		}
		seen[r.name] = true
	}
	return nil
}

// quota is what a rule of the policy is called in headers and problems.
func (p Policy) quota(r Rule) string {
	if r.name == "" {
		return p.Name
	}
	return p.Name + "." + r.name
}

func (p Policy) cost(ctx context.Context, r *http.Request) (int64, error) {
	if p.Cost == nil {
		return 1, nil
	}
	n, err := p.Cost(ctx, r)
	if err == nil && n < 1 {
		err = fmt.Errorf("ratelimit: policy %q: Cost returned %d, want at least 1", p.Name, n)
	}
	return n, err
}

// subject returns the key in the store of what the request is counted by.
func (p Policy) subject(ctx context.Context, r *http.Request) (string, error) {
	key, err := p.Key(ctx, r)
	if p.Fallback != nil && (errors.Is(err, ErrNoKey) || err == nil && key == "") {
		key, err = p.Fallback(ctx, r)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("policy %q: %w", p.Name, err)
	case key == "":
		return "", fmt.Errorf("policy %q: %w", p.Name, ErrNoKey)
	}
	return p.Name + ":" + bounded(key), nil
}

// combine makes one result of those of a policy's rules: the units that all of them
// leave, and the longest of the waits.
func (p Policy) combine(results []Result) Result {
	out := results[0]
	var violated []string
	for i, r := range results {
		if r.Violated {
			violated = append(violated, p.quota(p.Rules[i]))
		}
		if tighter(r, out) {
			out.Limit, out.Violated, out.Receipt = r.Limit, r.Violated, r.Receipt
		}
		out.Remaining = min(out.Remaining, r.Remaining)
		out.RetryAfter = max(out.RetryAfter, r.RetryAfter)
		out.ResetAfter = max(out.ResetAfter, r.ResetAfter)
	}
	if !out.Allowed {
		out.denial = &DeniedError{Policies: violated, Limit: out.Limit, RetryAfter: out.RetryAfter}
	}
	return out
}

// tighter tells whether a rather than b speaks for both: what one waits for longest,
// or has the least left of.
func tighter(a, b Result) bool {
	if a.RetryAfter != b.RetryAfter {
		return a.RetryAfter > b.RetryAfter
	}
	return a.Remaining < b.Remaining
}
