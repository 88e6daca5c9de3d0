package scale

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// network is the shared store as a machine sees it.
type network struct {
	ratelimit.Store
	delay time.Duration // there and back
	calls *atomic.Int64
	dead  atomic.Bool
}

var errDead = errors.New("the machine is dead")

// DoOne implements [ratelimit.Store].
func (n *network) DoOne(ctx context.Context, op ratelimit.Op) (res ratelimit.Result, err error) {
	err = n.call(ctx, func() { res, err = n.Store.DoOne(ctx, op) }, &err)
	return res, err
}

// Do implements [ratelimit.Store].
func (n *network) Do(ctx context.Context, ops []ratelimit.Op) (res []ratelimit.Result, err error) {
	err = n.call(ctx, func() { res, err = n.Store.Do(ctx, ops) }, &err)
	return res, err
}

// call calls the store after half of the delay, and returns after the other half. A machine that dies gets no answer,
// but the store may have run the ops.
func (n *network) call(ctx context.Context, do func(), err *error) error {
	<-time.After(n.delay / 2)
	if n.dead.Load() {
		return errDead
	}
	n.calls.Add(1)
	if at, ok := ctx.Value(atKey{}).(*time.Time); ok {
		*at = time.Now()
	}
	do()
	<-time.After(n.delay / 2)
	if n.dead.Load() {
		return errDead
	}
	return *err
}

// atKey is the context's key of a *time.Time that is set to the time at which the store runs the call.
type atKey struct{}
