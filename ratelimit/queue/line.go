package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// line holds the callers that wait for the same key. The first caller calls the store, or waits until it may call it.
// Queue.mu guards it.
type line struct {
	key     string
	waiters []*waiter
	units   int64 // the sum of the waiters' units

	next   time.Time // the first caller does not call the store before this time
	denied bool      // whether the store has denied the first caller
	short  bool      // whether the quota was too small for a caller, or is too small for the next caller
}

// waiter is a caller in a line.
type waiter struct {
	n     int64
	turn  chan error // gets nil when the caller becomes the first, or an error of the store
	woken bool       // whether a value was sent to turn
}

func (w *waiter) wake(err error) {
	if !w.woken {
		w.woken = true
		w.turn <- err
	}
}

// join adds a caller to the key's line. It returns an error if the line is full or if the caller cannot get its units before
// the deadline of ctx.
func (q *Queue) join(ctx context.Context, key string, n int64) (*line, *waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if l == nil {
		l = &line{key: key}
		q.lines[key] = l
	} else if err := q.admit(ctx, l); err != nil {
		return nil, nil, err
	}
	w := &waiter{n: n, turn: make(chan error, 1)}
	l.waiters = append(l.waiters, w)
	l.units += n
	if len(l.waiters) == 1 {
		w.wake(nil)
	}
	return l, w, nil
}

// admit returns an error if a caller with this context may not join the line.
func (q *Queue) admit(ctx context.Context, l *line) error {
	wait := time.Until(l.next)
	if l.short && !q.o.Bursts {
		wait = max(wait, 0) + q.refillTime(l.units)
	}
	if len(l.waiters) >= q.o.MaxWaiting {
		return q.denial(ErrFull, max(wait, 0))
	}
	return q.checkDeadline(ctx, wait)
}

// leave removes a caller from its line and wakes the caller that becomes the first. It deletes an empty line.
func (q *Queue) leave(l *line, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(l.waiters, w)
	if i == 0 && l.denied && len(l.waiters) > 1 && l.waiters[1].n < w.n {
		l.denied, l.next = false, time.Time{} // fewer units may be available now
	}
	l.waiters = slices.Delete(l.waiters, i, i+1)
	l.units -= w.n
	if len(l.waiters) == 0 {
		delete(q.lines, l.key)
		return
	}
	l.waiters[0].wake(nil)
}

// minRetry is the time that the first caller waits after a denial without a RetryAfter.
const minRetry = time.Millisecond

// applyResult updates a line after a take of n units. If the store has failed, all callers in the line get the error.
func (q *Queue) applyResult(ctx context.Context, l *line, n int64, res ratelimit.Result, err error) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err != nil:
		if ctx.Err() == nil && errors.Is(err, ratelimit.ErrStore) {
			for _, w := range l.waiters {
				w.wake(err)
			}
		}
	case res.Source == ratelimit.FromDenyList: // the next caller need not wait for its denial
	case !res.Allowed:
		l.denied, l.short, l.next = true, true, now.Add(max(res.RetryAfter, minRetry))
	default:
		q.scheduleNext(l, n, now, res)
	}
}

// scheduleNext sets the time of the next take after a take of n units has passed. The pace counts from the time for which
// this take was scheduled, so that small delays do not add up. After a longer delay, it counts from now.
func (q *Queue) scheduleNext(l *line, n int64, now time.Time, res ratelimit.Result) {
	due, pace := l.next, q.refillTime(n)
	if now.Sub(due) > pace {
		due = now
	}
	l.denied = false
	l.short = l.short || res.RetryAfter > 0
	l.next = now.Add(res.RetryAfter)
	if even := due.Add(pace); l.short && !q.o.Bursts && even.After(l.next) {
		l.next = even
	}
}

// refillTime returns the time after which n units are available again, at the rule's average rate.
func (q *Queue) refillTime(n int64) time.Duration {
	d := float64(q.rule.Per()) / float64(q.rule.Limit()) * float64(n)
	return time.Duration(min(d, float64(ratelimit.MaxDuration)))
}
