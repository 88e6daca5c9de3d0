package reqctx

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
)

// outcome is the result of a property, and an entry of the request's list of outcomes to commit and to close. Once it is
// published, only its link and its atomics change.
type outcome struct {
	self   any          // the *cell[T] around it; nil for a panic, so that Get takes the slow path
	b      *binding     // nil for an OnClose function
	fn     func() error // the OnClose function
	prev   *outcome     // the next older entry of the list
	err    error
	panics *lazy.PanicError // to be raised again for each reader
	set    bool             // by Set or Preset, and not by Resolve
	began  time.Time
	took   time.Duration
	by     *binding  // the property whose resolution read it first; may be nil
	pcs    []uintptr // the stack of the first reader, if recorded

	waited atomic.Int64 // the sum of the readers' waits in nanoseconds
	asked  atomic.Int32 // readers that had to wait
	raised atomic.Bool  // a reader got the panic
}

// cell is an outcome with its value.
type cell[T any] struct {
	outcome
	val T
}

// ops are the operations of a binding that need the type of its values.
type ops interface {
	newOutcome(b *binding) *outcome
	newAttempt(b *binding) *attempt
	compute(ctx context.Context, out *outcome)
	commit(ctx context.Context, out *outcome, status int, h http.Header) error
	close(ctx context.Context, out *outcome) error
	value(out *outcome) (any, error)
	setAny(ctx context.Context, c *Context, b *binding, v any) error
	typ() reflect.Type
}

type provided[T any] struct{ Prop[T] }

func (p provided[T]) newOutcome(b *binding) *outcome {
	c := new(cell[T])
	c.self, c.b = c, b
	return &c.outcome
}

// newAttempt returns an attempt and its outcome, which are one allocation.
func (p provided[T]) newAttempt(b *binding) *attempt {
	a := new(struct {
		attempt
		cell cell[T]
	})
	a.cell.self, a.cell.b, a.out = &a.cell, b, &a.cell.outcome
	return &a.attempt
}

func (p provided[T]) compute(ctx context.Context, out *outcome) {
	c := out.self.(*cell[T])
	for preset := range presets(ctx) {
		if preset.id == out.b.id {
			c.val, _ = preset.val.(T) // fails only for a nil interface, which is the zero T
			c.set = true
			return
		}
	}
	if p.Resolve == nil {
		c.err = named(ErrNoValue, out.b.name)
	} else {
		c.val, c.err = p.Resolve(ctx)
	}
}

func (p provided[T]) commit(ctx context.Context, out *outcome, status int, h http.Header) error {
	return p.Commit(ctx, out.self.(*cell[T]).val, status, h)
}

func (p provided[T]) close(ctx context.Context, out *outcome) error {
	var val T
	if c, ok := out.self.(*cell[T]); ok {
		val = c.val
	}
	return p.Close(ctx, val, out.err)
}

func (p provided[T]) value(out *outcome) (any, error) { return deliver[T](out) }

func (p provided[T]) setAny(ctx context.Context, c *Context, b *binding, v any) error {
	val, ok := v.(T)
	if !ok && !(v == nil && nilable(p.typ())) {
		return fmt.Errorf("%w: property %q holds %v, not %T", ErrType, b.name, p.typ(), v)
	}
	return set(ctx, c, b, val)
}

func nilable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return true
	default:
		return false
	}
}

func (p provided[T]) typ() reflect.Type { return reflect.TypeFor[T]() }

// closeDue reports whether an entry of the list has a function to call or a panic to report at the end.
func (out *outcome) closeDue() bool {
	return out.b == nil || out.b.closes && !out.set || out.panics != nil && !out.raised.Load()
}
