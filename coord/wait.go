package coord

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Wait gets the lease of a user as soon as it can be had, or returns the cause of ctx's
// end. In one process, those who wait for one user get it in the order in which they came,
// and only the first of them asks the store: when the lease must have ended, or MinInterval
// is over, and every Poll in between. A release in this process wakes it at once. Between
// processes there is no order. An error of the store is returned at once.
//
// As with Acquire, ctx is only for asking.
func (l *Leases) Wait(ctx context.Context, user string) (*Lease, error) {
	if err := checkUser(user); err != nil {
		return nil, err
	}
	p := l.lines.join(user)
	defer l.lines.leave(user, p)
	select {
	case <-p.first:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for {
		lease, err := l.Acquire(ctx, user)
		var denied *DeniedError
		if !errors.As(err, &denied) {
			return lease, err
		}
		if err := p.pause(ctx, denied, l.o.Poll); err != nil {
			return nil, err
		}
	}
}

// lines are the places of callers that wait, by user. The zero value has none.
type lines struct {
	mu sync.Mutex
	of map[string][]*place
}

// place is one place in a line.
type place struct {
	first chan struct{} // closed when no place is before it
	woken chan struct{} // has an element when the lease was released since it last asked
}

func (l *lines) join(user string) *place {
	p := &place{first: make(chan struct{}), woken: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = make(map[string][]*place)
	}
	if len(l.of[user]) == 0 {
		close(p.first)
	}
	l.of[user] = append(l.of[user], p)
	return p
}

func (l *lines) leave(user string, p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.of[user]
	i := slices.Index(line, p)
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(l.of, user)
		return
	}
	l.of[user] = line
	if i == 0 {
		close(line[0].first)
	}
}

// freed wakes who is first in a user's line.
func (l *lines) freed(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.of[user]; len(line) > 0 {
		select {
		case line[0].woken <- struct{}{}:
		default: // it is awake
		}
	}
}

// pause waits until it is worth asking again, with some jitter, so that those who wait in
// many processes don't all ask at once.
func (p *place) pause(ctx context.Context, denied *DeniedError, poll time.Duration) error {
	began := time.Now()
	d := max(denied.Soonest, min(denied.RetryAfter, poll))
	timer := time.NewTimer(d + rand.N(d/10+time.Millisecond))
	defer timer.Stop()
	for {
		select {
		case <-p.woken:
			if rest := denied.Soonest - time.Since(began); rest > 0 {
				timer.Reset(rest)
				continue
			}
			return nil
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
