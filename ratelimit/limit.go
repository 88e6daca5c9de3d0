package ratelimit

import (
	"context"
	"time"
)

// Limit is one request's view of one policy. [From] returns it without any I/O; its
// methods ask the store, and carry the errors of finding the request's key (ErrNoKey),
// of its cost (ErrTooLarge) and of the store (ErrStore). If there is no such policy, or
// the request is over, they return that error of From.
//
// All methods may be called concurrently.
type Limit struct {
	ctx    context.Context
	policy *limited
	err    error // why there is no policy
}

// Name returns the policy's name, "" if there is no policy.
func (l *Limit) Name() string {
	if l.err != nil {
		return ""
	}
	return l.policy.Name
}

// Take charges the request, once: further calls return the same result, from whatever
// goroutine. A denial is a result; its Err is an error to return from a handler.
//
// A take before the response's header goes out adds the headers RateLimit-Policy and
// RateLimit to it, and Retry-After if denied.
func (l *Limit) Take() (Result, error) {
	if l.err != nil {
		return Result{}, l.err
	}
	c, err := l.policy.keys.take.Get(l.ctx)
	if err != nil {
		return Result{}, err
	}
	return c.sum, nil
}

// Peek says what a take would come to now, and charges nothing. It asks the store each
// time; if the request was charged, that counts.
func (l *Limit) Peek() (Result, error) {
	if l.err != nil {
		return Result{}, l.err
	}
	results, err := l.policy.askAll(l.ctx, Peek)
	if err != nil {
		return Result{}, err
	}
	return l.policy.combine(results), nil
}

// Count returns the units of the last Per of the policy's first rule. It asks the store
// once for the request, and once more after the request was charged or refunded.
func (l *Limit) Count() (int64, error) {
	if l.err != nil {
		return 0, l.err
	}
	return l.policy.keys.count.Get(l.ctx)
}

// CountIn returns the units of the last d, at most the first rule's span; more is
// [ErrInterval], and zero means the rule's Per. It asks the store each time.
func (l *Limit) CountIn(d time.Duration) (int64, error) {
	if l.err != nil {
		return 0, l.err
	}
	return l.policy.countIn(l.ctx, d)
}

// Refund gives back what the request was charged, once: further calls return the same.
// It returns false if nothing was charged yet, if the take was denied, or if the store
// no longer keeps the charge. Take goes on to return its result, and charges no more.
func (l *Limit) Refund() (bool, error) {
	if l.err != nil {
		return false, l.err
	}
	c, err, taken := l.policy.keys.take.Peek(l.ctx)
	if err != nil || !taken || !c.sum.Allowed {
		return false, err
	}
	results, err := l.policy.keys.refund.Get(l.ctx)
	for _, r := range results {
		if !r.Allowed {
			return false, err
		}
	}
	return err == nil, err
}
