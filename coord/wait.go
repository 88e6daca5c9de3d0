package coord

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Wait returns the lease of a user as soon as it is free. If ctx ends first, it returns the cause. If the store
// fails, it returns the error at once. As with Acquire, the end of ctx does not release the lease.
//
// Within a process, callers that wait for the same user get the lease in the order of their calls. Only the first
// caller asks the store. It asks when the lease has reached its end, when MinInterval has passed, and at the interval
// Poll before that. A release in this process wakes it at once. There is no order between processes.
func (l *Leases) Wait(ctx context.Context, user string) (*Lease, error) {
	if err := checkUser(user); err != nil {
		return nil, err
	}
	list := l.waiters.join(user)
	defer l.waiters.leave(user, list)
	if list.first.Acquire(ctx, 1) != nil {
		return nil, context.Cause(ctx)
	}
	defer list.first.Release(1)
	select {
	case <-list.woken: // the release was meant for an earlier caller
	default:
	}
	for {
		lease, err := l.Acquire(ctx, user)
		var denied *DeniedError
		if !errors.As(err, &denied) {
			return lease, err
		}
		if err := list.waitForRelease(ctx, denied, l.o.Poll); err != nil {
			return nil, err
		}
	}
}

// waitLists holds the waiting callers, by user. The zero value is empty.
type waitLists struct {
	mu   sync.Mutex
	list map[string]*waitList
}

// waitList holds the callers that wait for the same user.
type waitList struct {
	n     int                 // the number of callers; guarded by waitLists.mu
	first *semaphore.Weighted // held by the first caller; the others acquire it in order
	woken chan struct{}       // has an element if the lease was released after the first caller asked
}

func (w *waitLists) join(user string) *waitList {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list == nil {
		w.list = make(map[string]*waitList)
	}
	list := w.list[user]
	if list == nil {
		list = &waitList{first: semaphore.NewWeighted(1), woken: make(chan struct{}, 1)}
		w.list[user] = list
	}
	list.n++
	return list
}

func (w *waitLists) leave(user string, list *waitList) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if list.n--; list.n == 0 {
		delete(w.list, user)
	}
}

// wake wakes the first of the callers that wait for a user.
func (w *waitLists) wake(user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if list := w.list[user]; list != nil {
		select {
		case list.woken <- struct{}{}:
		default: // the caller was woken before
		}
	}
}

// waitForRelease waits until the store should be asked again. The time is a little random, so that waiters in many
// processes do not ask at the same moment.
func (w *waitList) waitForRelease(ctx context.Context, denied *DeniedError, poll time.Duration) error {
	began := time.Now()
	d := max(denied.Soonest, min(denied.RetryAfter, poll))
	timer := time.NewTimer(d + rand.N(d/10+time.Millisecond))
	defer timer.Stop()
	for {
		select {
		case <-w.woken:
			rest := denied.Soonest - time.Since(began)
			if rest <= 0 {
				return nil
			}
			timer.Reset(rest)
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
