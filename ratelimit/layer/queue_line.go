package layer

import (
	linked "container/list"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// line is the callers who wait for one key. The first of them has the turn: it asks the
// store, or waits for the moment to. The queue's mutex guards it.
type line struct {
	key     string
	callers linked.List // of *waiter
	units   int64       // what all of them want

	// What is known of when a take passes.
	next  time.Time // no take passes before
	until time.Time // nor one of n units or more, if n isn't 0
	n     int64
	short bool // there was no quota for somebody, or is none for the next
}

// waiter is one who stands in line.
type waiter struct {
	n     int64
	place *linked.Element
	// turn gets nil when it is the caller's turn, or the error that ended the line
	// before.
	turn chan error
	told bool // turn has got it
}

func (c *waiter) tell(err error) {
	if !c.told {
		c.told = true
		c.turn <- err
	}
}

// enter has a caller stand in line, unless that is in vain.
func (q *Queue) enter(ctx context.Context, key string, n int64) (*line, *waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return nil, nil, ErrQueueClosed
	}
	l := q.lines[key]
	if l == nil {
		l = &line{key: key}
		q.lines[key] = l
	} else if err := q.room(ctx, l, n); err != nil {
		return nil, nil, err
	}
	c := &waiter{n: n, turn: make(chan error, 1)}
	c.place = l.callers.PushBack(c)
	l.units += n
	if l.callers.Len() == 1 {
		c.tell(nil)
	}
	return l, c, nil
}

// room says whether one more can stand in a line in which somebody stands.
func (q *Queue) room(ctx context.Context, l *line, n int64) error {
	first := l.callers.Front().Value.(*waiter)
	wait := time.Until(l.opens(first.n))
	if l.short && !q.o.Bursts {
		wait = max(wait, 0) + q.apart(l.units)
	}
	if l.callers.Len() >= q.o.MaxWaiting {
		return fmt.Errorf("%w: %w", ErrTooManyWaiting, &ratelimit.DeniedError{Limit: q.rule.Limit(), RetryAfter: max(wait, 0)})
	}
	return q.inTime(ctx, wait)
}

// leave takes a caller out of its line, and gives the turn on if it had it. A line in which
// nobody stands is forgotten.
func (q *Queue) leave(l *line, c *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.callers.Remove(c.place)
	l.units -= c.n
	if first := l.callers.Front(); first != nil {
		first.Value.(*waiter).tell(nil)
		return
	}
	delete(q.lines, l.key)
}

// opens returns when a take of n units may pass. The zero time is now.
func (l *line) opens(n int64) time.Time {
	if l.n > 0 && n >= l.n && l.until.After(l.next) {
		return l.until
	}
	return l.next
}

// atOnce is how long the first in line waits if it was denied and told to wait no time.
const atOnce = time.Millisecond

// learn keeps what the store said to a take of n.
func (q *Queue) learn(ctx context.Context, l *line, n int64, res ratelimit.Result, err error) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err != nil:
		if ctx.Err() == nil && errors.Is(err, ratelimit.ErrStore) {
			for e := l.callers.Front(); e != nil; e = e.Next() {
				e.Value.(*waiter).tell(err)
			}
		}
	case !res.Allowed:
		l.n, l.until, l.short = n, now.Add(max(res.RetryAfter, atOnce)), true
	default:
		q.passed(l, n, now, res)
	}
}

// passed keeps that n units were taken, as due. A little lateness doesn't add up: what
// matters is when the caller could pass, if that is no longer ago than its share takes.
func (q *Queue) passed(l *line, n int64, now time.Time, res ratelimit.Result) {
	due, apart := l.opens(n), q.apart(n)
	if now.Sub(due) > apart {
		due = now
	}
	l.short = l.short || res.RetryAfter > 0
	l.next = now.Add(res.RetryAfter)
	if even := due.Add(apart); l.short && !q.o.Bursts && even.After(l.next) {
		l.next = even
	}
}

// apart returns how long n units take to come back at an even pace.
func (q *Queue) apart(n int64) time.Duration {
	d := float64(q.rule.Per()) / float64(q.rule.Limit()) * float64(n)
	return time.Duration(min(d, float64(ratelimit.MaxDuration)))
}
