package layer

import (
	"container/heap"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// endings knows which leases end when, and what is to be given back.
type endings struct {
	wake chan struct{} // has room for one: there is something new to wait for

	mu     sync.Mutex
	leases byEnd
	back   []ratelimit.Op // refunds
	closed bool
}

const (
	notListed = -1
	// maxBack is how many refunds wait for the store at most. Those beyond are not made, and
	// their units stay charged.
	maxBack = 1 << 14
	// refundsAtOnce is how many are one call.
	refundsAtOnce = 128
)

// enter counts one more goroutine, unless the layer is closed.
func (e *endings) enter(wg *sync.WaitGroup) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	wg.Add(1)
	return true
}

// close tells whether it was open.
func (e *endings) close() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.closed
	e.closed = true
	return !was
}

// add takes note of a lease.
func (e *endings) add(l *lent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	heap.Push(&e.leases, l)
	if l.index == 0 {
		e.poke()
	}
}

// remove forgets a lease that has nothing left.
func (e *endings) remove(l *lent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.index != notListed {
		heap.Remove(&e.leases, l.index)
	}
}

// give has n units of a lease given back that is closed.
func (e *endings) give(l *lent, n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n > 0 && len(e.back) < maxBack {
		e.back = append(e.back, l.back(n))
		e.poke()
	}
}

func (e *endings) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// next returns the time of the first ending, if there is one.
func (e *endings) next() (at time.Duration, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.leases) == 0 {
		return 0, false
	}
	return e.leases[0].end, true
}

// over forgets the leases that have ended, and returns them.
func (e *endings) over(now time.Duration) (leases []*lent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.leases) > 0 && e.leases[0].end <= now {
		leases = append(leases, heap.Pop(&e.leases).(*lent))
	}
	return leases
}

// refunds forgets what is to be given back, and returns it.
func (e *endings) refunds() (ops []ratelimit.Op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ops, e.back = e.back, nil
	return ops
}

// all ends every lease, and returns what is to be given back.
func (e *endings) all(now time.Duration) []ratelimit.Op {
	const never = 1<<63 - 1
	e.end(e.over(never), now)
	return e.refunds()
}

// end closes leases and has their rest given back.
func (e *endings) end(leases []*lent, now time.Duration) {
	for _, l := range leases {
		h := l.of
		h.mu.Lock()
		rest := h.drop(l, now)
		h.mu.Unlock()
		e.give(l, rest)
	}
}

// giveBack ends leases when their time has come, and gives back what is left of them.
func (l *leaseLayer) giveBack() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if at, ok := l.ends.next(); ok {
			timer.Reset(at - l.now())
		} else {
			timer.Stop()
		}
		select {
		case <-l.stop:
			return
		case <-l.ends.wake:
		case <-timer.C:
		}
		now := l.now()
		l.ends.end(l.ends.over(now), now)
		_ = l.refund(l.ends.refunds()) // what could not be given back stays charged
	}
}

// refund gives back what is left of leases. Nothing is tried again: a refund whose answer
// was lost may have been made.
func (l *leaseLayer) refund(ops []ratelimit.Op) (err error) {
	for some := range slices.Chunk(ops, refundsAtOnce) {
		if e := l.refundSome(some); e != nil {
			err = fmt.Errorf("layer: Lease: what is left of %d leases stays charged: %w", len(some), e)
		}
	}
	return err
}

func (l *leaseLayer) refundSome(ops []ratelimit.Op) (err error) {
	ctx, cancel := l.background()
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v", ratelimit.ErrStore, p)
		}
	}()
	_, err = l.inner.Do(ctx, ops)
	return err
}

// byEnd is a heap.
type byEnd []*lent

func (b byEnd) Len() int           { return len(b) }
func (b byEnd) Less(i, j int) bool { return b[i].end < b[j].end }
func (b byEnd) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].index, b[j].index = i, j
}

// Push is for package heap.
func (b *byEnd) Push(x any) {
	l := x.(*lent)
	l.index = len(*b)
	*b = append(*b, l)
}

// Pop is for package heap.
func (b *byEnd) Pop() any {
	last := len(*b) - 1
	l := (*b)[last]
	(*b)[last] = nil
	*b, l.index = (*b)[:last], notListed
	return l
}
