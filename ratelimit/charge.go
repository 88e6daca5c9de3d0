package ratelimit

import (
	"context"
	"sync/atomic"
)

// charge is the result of a request's take.
type charge struct {
	*requestTerms
	sum     Result
	results []Result    // one for each rule
	one     [1]Result   // their place if it is only one
	back    atomic.Bool // the results are refunded by now
	after   []Result    // what the refund came to; to be read once back is true
}

// refund gives back what the request was charged. It is to be called once.
func (c *charge) refund(ctx context.Context) (bool, error) {
	ops := make([]Op, len(c.rules))
	for i, r := range c.rules {
		ops[i] = Op{Rule: r, Key: c.subject, Kind: Refund, Receipt: c.results[i].Receipt}
	}
	results, err := c.policy.do(ctx, ops)
	if err != nil {
		return false, err
	}
	c.after = results
	c.back.Store(true)
	for _, r := range results {
		if !r.Allowed {
			return false, nil
		}
	}
	return true, nil
}
