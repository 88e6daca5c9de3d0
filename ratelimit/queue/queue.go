// Package queue makes callers wait for quota instead of denying them: in the order in which
// they came, by key, for one rule. It is for work that can wait, such as calls of an API that
// has a limit of its own.
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

// Errors of [Queue.Wait]. Nothing was charged.
var (
	// ErrTooLong means that a wait cannot end before its context's deadline. It comes with a
	// [*ratelimit.DeniedError], so it becomes a 429.
	ErrTooLong = errors.New("queue: the wait would exceed the context's deadline")
	// ErrFull means that MaxWaiting callers wait for the key. It comes with a
	// [*ratelimit.DeniedError], too.
	ErrFull = errors.New("queue: too many callers wait for the key")
	// ErrClosed means that the queue was closed.
	ErrClosed = errors.New("queue: closed")
)

// Options configure a [Queue]. The zero value is usable.
type Options struct {
	// MaxWaiting is how many callers may wait for one key, including the one that calls the
	// store; one more gets [ErrFull]. Zero means 1024.
	MaxWaiting int
	// Bursts lets waiting callers pass as soon as the rule allows: a whole quota at once when
	// a fixed window begins. Otherwise, once quota is short, callers pass at an even pace, each
	// of them n × Per/Limit before the next.
	Bursts bool
}

// Queue makes callers wait for the quota of one rule, first come, first served by key.
//
// Only the first caller in a key's line calls the store, and not before the time that the
// store last returned. So a key passes its callers one after another, at most as many as the
// store can answer in sequence. Several processes that wait for the same quota are served in
// no particular order.
//
// A Queue is safe for concurrent use. It has no goroutine, and keeps nothing of a key for
// which no caller waits: the next caller then passes at once if the rule allows it, whatever
// the pace was. For a pace that holds always, use a GCRA with a small burst.
type Queue struct {
	store  ratelimit.Store
	rule   ratelimit.Rule
	o      Options
	closed chan struct{}

	mu    sync.Mutex
	done  bool             // closed is closed
	lines map[string]*line // by key; none is empty
}

// New returns a queue for the quota of rule in store, which may have layers. It returns an
// error if an argument is invalid.
func New(store ratelimit.Store, rule ratelimit.Rule, o Options) (*Queue, error) {
	switch {
	case option.IsNil(store):
		return nil, errors.New("queue: New: store is nil")
	case rule.Err() != nil:
		return nil, option.Prefix("queue: New: ", "ratelimit", rule.Err())
	case rule.Limit() == 0:
		return nil, fmt.Errorf("queue: New: %v has no limit", rule)
	}
	if err := option.Count("queue", "Options.MaxWaiting", o.MaxWaiting, 0); err != nil {
		return nil, err
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 1024
	}
	return &Queue{
		store: store, rule: rule, o: o,
		closed: make(chan struct{}), lines: map[string]*line{},
	}, nil
}

// Wait takes n units of key as soon as they are available and all earlier callers have
// theirs. It returns an allowed result, or an error:
//
//   - the cause of ctx's end. A caller that leaves while it waits isn't charged; one that
//     leaves during the call of the store may be, as with any take.
//   - [ErrTooLong] at once, if by what is known the units come after ctx's deadline. That
//     supposes that the callers before it stay, and that no units are refunded.
//   - [ErrFull], [ErrClosed].
//   - [ratelimit.ErrTooLarge] if n is above the limit, and other errors of the op.
//   - one that wraps [ratelimit.ErrStore]. If the store fails for one caller, all callers
//     behind it get the error, too.
//   - a [*ratelimit.DeniedError] if the key is on a deny list: waiting would not help.
func (q *Queue) Wait(ctx context.Context, key string, n int64) (ratelimit.Result, error) {
	op := ratelimit.Op{Rule: q.rule, Key: key, N: n, Kind: ratelimit.Take}
	if ctx.Err() != nil {
		return ratelimit.Result{}, context.Cause(ctx)
	}
	if err := storage.Validate([]ratelimit.Op{op}); err != nil {
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
	case <-q.closed:
		err = ErrClosed
	}
	for err == nil {
		if err = q.pause(ctx, l, n); err != nil {
			break
		}
		var res ratelimit.Result
		res, err = q.store.DoOne(ctx, op)
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
func (q *Queue) pause(ctx context.Context, l *line, n int64) error {
	q.mu.Lock()
	wait := time.Until(l.opensAt(n))
	q.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	if err := q.checkDeadline(ctx, wait); err != nil {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-q.closed:
		return ErrClosed
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

// Waiting returns how many callers wait for key, including the one that calls the store.
func (q *Queue) Waiting(key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[key]; l != nil {
		return len(l.waiters)
	}
	return 0
}

// Close ends all waits, and those that begin later, with [ErrClosed]. A caller whose
// call of the store is in flight gets its result first. Close always returns nil.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.done {
		q.done = true
		close(q.closed)
	}
	return nil
}
