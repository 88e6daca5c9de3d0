// Package queue makes callers wait for quota instead of denying them. For each key of a rule, callers wait in the
// order in which they came. It is for work that can wait, such as calls to an API that has a limit.
package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// Errors of [Queue.Wait]. They come with a [*ratelimit.DeniedError], so they become a 429. Nothing was charged.
var (
	// ErrTooLong means that a wait cannot end before its context's deadline.
	ErrTooLong = errors.New("queue: the wait would exceed the context's deadline")
	// ErrFull means that MaxWaiting callers already wait for the key.
	ErrFull = errors.New("queue: too many callers wait for the key")
)

// Options configure a [Queue]. The zero value is usable.
type Options struct {
	// MaxWaiting is the maximum number of callers that wait for the same key, including the caller that calls the
	// store. The zero value means 1024.
	MaxWaiting int
	// Bursts lets waiting callers pass as soon as the rule allows it. For example, many callers may pass when a fixed window
	// begins. Otherwise, once quota is short, callers that wait together pass at an even pace: after a caller of n units,
	// the next one waits n × Per/Limit. A single caller that calls in a loop, and a Concurrent, always have bursts.
	Bursts bool
}

// Queue makes callers wait for the quota of a rule. It is safe for concurrent use.
//
// The callers of a key wait in a line. Only the first caller calls the store. After a denial, it waits for the RetryAfter of
// the result before it calls the store again. So the callers of a key pass one after another, in separate calls of the
// store. There is no order between processes.
//
// A Queue has no goroutine. It stores nothing for a key without waiting callers, so the next caller passes at once if
// the rule allows it, even if callers were slowed down before. For a permanent pace, use a GCRA with a small burst.
type Queue struct {
	limiter *ratelimit.Limiter
	rule    ratelimit.Rule
	o       Options

	mu    sync.Mutex
	lines map[string]*line // by key; an empty line is deleted
}

// New returns a queue for the quota of rule in store, which may have layers. It returns an error if an argument is invalid.
func New(store ratelimit.Store, rule ratelimit.Rule, o Options) (*Queue, error) {
	limiter, err := ratelimit.NewLimiter(store, rule)
	switch {
	case err != nil:
		return nil, fmt.Errorf("queue: %w", err)
	case rule.Limit() == 0:
		return nil, fmt.Errorf("queue: %v has no limit", rule)
	}
	if err := option.Count("queue", "Options.MaxWaiting", o.MaxWaiting, 0); err != nil {
		return nil, err
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 1024
	}
	o.Bursts = o.Bursts || rule.Layout().Concurrent
	return &Queue{limiter: limiter, rule: rule, o: o, lines: map[string]*line{}}, nil
}

// Wait takes n units of key as soon as they are available and all earlier callers have theirs. It returns an allowed
// result, or one of these errors:
//
//   - The cause of ctx, if ctx ends. A caller that leaves while it waits is not charged. A caller that leaves during its
//     call of the store may be charged, as with any take.
//   - [ErrTooLong] at once, if the units will come after ctx's deadline. This assumes that all earlier callers stay and
//     that no units are refunded.
//   - [ErrFull].
//   - [ratelimit.ErrTooLarge] if n exceeds the limit, and other errors of the op.
//   - An error that wraps [ratelimit.ErrStore]. If the store fails for a caller, all callers behind it get the error.
//   - A [*ratelimit.DeniedError] if the key is on a deny list, because waiting would not help.
func (q *Queue) Wait(ctx context.Context, key string, n int64) (ratelimit.Result, error) {
	return q.wait(ctx, key, n, func(context.Context) error { return nil })
}

// wait is Wait. The first caller calls held before each call of the store, while the others wait behind it.
func (q *Queue) wait(ctx context.Context, key string, n int64, held func(context.Context) error) (ratelimit.Result, error) {
	if ctx.Err() != nil {
		return ratelimit.Result{}, context.Cause(ctx)
	}
	if err := storage.Validate([]ratelimit.Op{{Rule: q.rule, Key: key, N: n, Kind: ratelimit.Take}}); err != nil {
		return ratelimit.Result{}, err
	}
	l, w, err := q.join(ctx, key, n)
	if err != nil {
		return ratelimit.Result{}, err
	}
	defer q.leave(l, w)
	select {
	case err = <-w.turn:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	for err == nil {
		if err = q.pause(ctx, l); err == nil {
			err = held(ctx)
		}
		if err != nil {
			break
		}
		var res ratelimit.Result
		res, err = q.limiter.Take(ctx, key, n)
		q.applyResult(ctx, l, n, res, err)
		switch {
		case err != nil:
		case res.Allowed:
			return res, nil
		case res.Source == ratelimit.FromDenyList:
			err = res.Err()
		}
	}
	return ratelimit.Result{}, err
}

// pause waits until the first caller may call the store.
func (q *Queue) pause(ctx context.Context, l *line) error {
	q.mu.Lock()
	wait := time.Until(l.next)
	q.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	if err := q.checkDeadline(ctx, wait); err != nil {
		return err
	}
	return sleep(ctx, wait)
}

// sleep waits for d, or returns the cause if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// checkDeadline returns an error if ctx ends before the wait.
func (q *Queue) checkDeadline(ctx context.Context, wait time.Duration) error {
	deadline, ok := ctx.Deadline()
	if !ok || wait <= time.Until(deadline) {
		return nil
	}
	return q.denial(ErrTooLong, wait)
}

func (q *Queue) denial(reason error, wait time.Duration) error {
	return fmt.Errorf("%w: %w", reason, &ratelimit.DeniedError{Limit: q.rule.Limit(), RetryAfter: wait})
}
