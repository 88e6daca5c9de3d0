package layer

import (
	"context"
	"runtime"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// fly makes the call of a flush, and then of those who have queued meanwhile, until there
// are none.
func (c *Coalesce) fly(l *lane, f *flush) {
	defer func() {
		if f != nil { // the store has ended the goroutine
			c.land(l)
		}
	}()
	for f != nil {
		f.Run(nil)
		l.gather()
		f = l.takeOff()
	}
}

// gather yields the processor as long as that makes the queue longer: those who were woken
// may ask again, and come along.
func (l *lane) gather() {
	for had, has := -1, l.queued(); has > had; had, has = has, l.queued() {
		runtime.Gosched()
	}
}

// queued returns how many wait.
func (l *lane) queued() int {
	l.list.mu.Lock()
	defer l.list.mu.Unlock()
	if l.queue == nil {
		return 0
	}
	return l.queue.waiting
}

// wait waits for a flush. A computation of a scope is known to wait, so that what its scope
// has gathered goes.
func (c *Coalesce) wait(ctx context.Context, t turn) (ratelimit.Result, error) {
	if err := t.flush.Wait(ctx, lazy.Current(ctx)); err != nil && t.flush.leave(t.place) {
		return ratelimit.Result{}, err
	}
	return t.flush.result(t.place)
}

// goApart makes the call of one take apart from its scope, which others wait for.
func (c *Coalesce) goApart(ctx context.Context, l *lane, op *ratelimit.Op) (ratelimit.Result, error) {
	defer c.land(l)
	f := newFlush(apart{ctx}, c, l)
	place := f.add(op.N)
	f.Run(lazy.Current(ctx))
	return f.result(place)
}

// apart is a caller's context outside of its scope.
type apart struct{ context.Context }

// Value finds no scope.
func (a apart) Value(key any) any {
	if _, ok := key.(lazy.ScopeKey); ok {
		return nil
	}
	return a.Context.Value(key)
}
