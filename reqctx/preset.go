package reqctx

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// presetsUsed spares the requests of a program that never calls Preset, which is every
// program but a test, the search for presets in their contexts.
var presetsUsed atomic.Bool

// preset is a context that brings a property's value.
type preset struct {
	context.Context
	id   int32
	name string
	bind func(slot uint16) *binding
}

type presetKey struct{}

func (p *preset) Value(key any) any {
	if _, ok := key.(presetKey); ok {
		return p
	}
	return p.Context.Value(key)
}

func presetOf(ctx context.Context) *preset {
	p, _ := ctx.Value(presetKey{}).(*preset)
	return p
}

// Preset returns a context for tests: a request that begins with it, or with a context
// derived from it, has v as the property's value and does not resolve it. The property's
// Store, Commit and Close functions do not run, and its Vary fields are not added. Set
// replaces v in the request, and Invalidate brings it back. Of two presets for one key the
// later counts. A preset has no effect on a request that has already begun.
//
//	r := httptest.NewRequest("GET", "/", nil)
//	srv.ServeHTTP(w, r.WithContext(reqctx.Preset(r.Context(), User, fake)))
//
// key must be the one that was given to [Provide], which [Context.PresetErr] checks. The
// properties session, params and ratelimit, and every [Memo] and [Batch], have keys of their
// own and cannot be preset; a test gives them a memory store, a request or another registry.
func Preset[T any](ctx context.Context, key Key[T], v T) context.Context {
	presetsUsed.Store(true)
	fn := func(context.Context) (T, error) { return v, nil }
	return &preset{Context: ctx, id: key.id, name: key.name, bind: func(slot uint16) *binding {
		b := newState(key, fn, int(slot))
		b.preset = true
		return b
	}}
}

// applyPresets puts the presets of c's context in place of the properties that c's registry
// has. c must be new.
func (c *Context) applyPresets() {
	p := presetOf(c.Context)
	if p == nil {
		return
	}
	c.table = c.table.clone()
	for ; p != nil; p = presetOf(p.Context) {
		old := c.table.names[p.name]
		if old == nil || old.id != p.id || old.preset {
			continue
		}
		b := p.bind(old.slot)
		b.private = old.private
		c.table.put(b)
		out := b.ops.newOutcome(b)
		out.set = true
		b.ops.compute(c, out)
		c.slots[b.slot].Store(out)
	}
}

// PresetErr returns an error that is [ErrNoProperty] if a preset of c's context is for a
// property that neither c nor a context around it has. A server calls it when a request
// begins, and answers an error with a logged 500: otherwise a test would go on without its fake.
func (c *Context) PresetErr() error {
	if !presetsUsed.Load() {
		return nil
	}
	var errs []error
	for p := presetOf(c.Context); p != nil; p = presetOf(p.Context) {
		if _, _, err := lookup(c, p.id, p.name); err != nil {
			errs = append(errs, fmt.Errorf("reqctx: preset of %q: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}
