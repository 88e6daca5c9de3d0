package ratelimit

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
)

// Event describes an op that a store has run. Op.Key may be personal data, such as an address, so don't log it or use it
// in metrics.
type Event struct {
	Op     Op
	Policy string        // the name of the policy whose op it is, or ""
	Result Result        // zero if Err is not nil; its Source names the layer that has answered
	Began  time.Time     // of the call of the store, which may have had other ops
	Took   time.Duration // of the call
	Err    error         // of the store, so a denial is not an error
}

// Observe returns a store that runs ops with inner and calls observe once for each op, after the call of inner and
// before its own method returns. If observe is nil, it returns inner.
//
// If inner is a layer of package layer, observe gets the layer's results. The events of a store inside a layer have no
// Policy. observe gets the context of the call. It must be safe for concurrent use and must not block. A panic of
// observe is logged to [slog.Default] and has no other effect. If inner panics, observe is not called.
func Observe(inner Store, observe func(ctx context.Context, e Event)) Store {
	if observe == nil || option.IsNil(inner) {
		return inner // functions that get the result refuse a nil store
	}
	return &observedStore{inner: inner, observe: observe}
}

// observedStore is the store of Observe.
type observedStore struct {
	inner   Store
	observe func(ctx context.Context, e Event)
	policy  string // "" unless only this policy uses the store
}

// observedBy returns store, with the policy's name in the events of Observe.
func observedBy(policy string, store Store) Store {
	o, observed := store.(*observedStore)
	if !observed {
		return store
	}
	return &observedStore{observedBy(policy, o.inner), o.observe, policy}
}

// Do implements [Store].
func (o *observedStore) Do(ctx context.Context, ops []Op) ([]Result, error) {
	e := Event{Policy: o.policy, Began: time.Now()}
	results, err := o.inner.Do(ctx, ops)
	e.Took, e.Err = time.Since(e.Began), err
	for i := range ops {
		e.Op = ops[i]
		if err == nil {
			e.Result = results[i]
		}
		o.report(ctx, e)
	}
	return results, err
}

// DoOne implements [Store].
func (o *observedStore) DoOne(ctx context.Context, op Op) (Result, error) {
	e := Event{Op: op, Policy: o.policy, Began: time.Now()}
	res, err := o.inner.DoOne(ctx, op)
	e.Took, e.Err = time.Since(e.Began), err
	if err == nil {
		e.Result = res
	}
	o.report(ctx, e)
	return res, err
}

// report calls observe and stops its panics, which must not hide the result of a charge.
func (o *observedStore) report(ctx context.Context, e Event) {
	defer func() {
		if v := recover(); v != nil {
			slog.ErrorContext(ctx, "rate limit observer panicked", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		}
	}()
	o.observe(ctx, e)
}
