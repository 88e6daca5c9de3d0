package ratelimit

import (
	"context"
	"iter"
	"strings"

	"github.com/lazyreq/lazyreq/reqctx"
)

// Decision is what one rule decided when its policy was taken from. It holds no key.
type Decision struct {
	Policy string
	Quota  string // the rule's name in header fields: the policy's, or with the rule's after a dot
	Rule   Rule
	// Result is the rule's own: Violated reports that it denied, or would have denied if its
	// Source is FromShadow.
	Result Result
}

// Decisions returns the decisions of all takes of ctx's request so far, of policies that were
// registered with [Provide]. It does no I/O.
func Decisions(ctx context.Context) iter.Seq[Decision] {
	return func(yield func(Decision) bool) {
		c := reqctx.From(ctx)
		if c == nil {
			return
		}
		for name, info := range c.Props() {
			if info.State != reqctx.Resolved {
				continue
			}
			policy, isTake := strings.CutSuffix(strings.TrimPrefix(name, "ratelimit."), ".take")
			k := findKeys(policy)
			if !isTake || k == nil || k.take.Name() != name {
				continue
			}
			if charge, err, taken := k.take.Peek(c); taken && err == nil && !charge.yieldDecisions(yield) {
				return
			}
		}
	}
}

// yieldDecisions passes on the decision of each rule, and reports whether to go on.
func (c *charge) yieldDecisions(yield func(Decision) bool) bool {
	for i, res := range c.results {
		quota := c.policy.quotaName(c.rules[i], len(c.rules) == 1)
		if !yield(Decision{Policy: c.policy.Name, Quota: quota, Rule: c.rules[i], Result: res}) {
			return false
		}
	}
	return true
}
