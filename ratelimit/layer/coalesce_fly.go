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
		// Who was woken may ask again, and comes along.
		runtime.Gosched()
		f = l.takeOff()
	}
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
