package reqctx

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Options configures a [Registry]. The zero value is usable.
type Options struct {
	// Logger gets the errors that no caller gets: errors of tasks and Close functions, and panics that no reader
	// raised. The zero value means [slog.Default].
	Logger *slog.Logger
	// Observer is called for every resolution. The zero value means no observer.
	Observer Observer
	// Callers records who first read a property, for [Info.Caller]. It costs a microsecond for each resolution.
	Callers bool
}

// Registry holds the properties that requests have. Provide all of them before the first request, because a request
// does not get properties that are provided after its start. A Registry is safe for concurrent use.
type Registry struct {
	mu  sync.Mutex // held while tab is replaced
	tab atomic.Pointer[table]
}

// table is an immutable snapshot of a registry's properties.
type table struct {
	opts  Options
	index []uint16 // the property's slot by key id, 0 if there is none
	bind  []*binding
	names map[string]*binding
}

// NewRegistry returns a registry without properties.
func NewRegistry(o Options) *Registry {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	reg := new(Registry)
	reg.tab.Store(&table{opts: o, bind: []*binding{nil}, names: map[string]*binding{}})
	return reg
}

// Provide adds a property. It panics if the registry already has a property of this name, or if the key is the zero Key.
func Provide[T any](reg *Registry, key Key[T], p Prop[T]) { reg.add(newBinding(key, p)) }

// ProvideState adds a property that needs no I/O: a value that the code of one request shares, such as a counter. fn
// makes the value on first use. fn must not block or read other properties, except states. If two goroutines call fn
// at the same time, one of the results is kept. Measurements and observers do not see states. ProvideState panics in
// the same cases as [Provide].
func ProvideState[T any](reg *Registry, key Key[T], fn func(ctx context.Context) (T, error)) {
	b := newBinding(key, Prop[T]{Resolve: fn})
	b.state = true
	reg.add(b)
}

// add adds b in the next slot.
func (reg *Registry) add(b *binding) {
	if b.id == 0 {
		panic("reqctx: Provide of a zero Key; make keys with NewKey")
	}
	reg.mu.Lock()
	defer reg.mu.Unlock()
	t := reg.tab.Load()
	t = &table{opts: t.opts, index: slices.Clone(t.index), bind: append(slices.Clone(t.bind), b), names: maps.Clone(t.names)}
	if old := t.names[b.name]; old != nil {
		panic(fmt.Sprintf("reqctx: property %q is already provided, with type %v; this one has %v",
			b.name, old.ops.typ(), b.ops.typ()))
	}
	b.slot = uint16(len(t.bind) - 1)
	for len(t.index) <= int(b.id) {
		t.index = append(t.index, 0)
	}
	t.index[b.id] = b.slot
	t.names[b.name] = b
	reg.tab.Store(t)
}

// public returns the property of that name, or nil if there is none or it is private.
func (t *table) public(name string) *binding {
	if b := t.names[name]; b != nil && !b.private {
		return b
	}
	return nil
}

// unknown returns the error for a property that the table does not have, or that is private.
func (t *table) unknown(name string) error {
	if t.public(name) != nil {
		return fmt.Errorf("%w: %q is provided with another key: use the one from Provide", ErrNoProperty, name)
	}
	have := slices.Sorted(maps.Keys(t.names))
	have = slices.DeleteFunc(have, func(name string) bool { return t.names[name].private })
	return fmt.Errorf("%w: %q (provided: %s): call Provide first", ErrNoProperty, name, strings.Join(have, ", "))
}

// presetsUsed is set by Preset. Only tests call that, so other programs need not search for presets.
var presetsUsed atomic.Bool

// preset is a context that carries a property's value.
type preset struct {
	context.Context
	id   int32
	name string
	val  any
}

type presetKey struct{}

func (p *preset) Value(key any) any {
	if _, ok := key.(presetKey); ok {
		return p
	}
	return p.Context.Value(key)
}

// presets yields the presets of ctx, the latest first.
func presets(ctx context.Context) iter.Seq[*preset] {
	return func(yield func(*preset) bool) {
		if !presetsUsed.Load() {
			return
		}
		p, _ := ctx.Value(presetKey{}).(*preset)
		for p != nil && yield(p) {
			p, _ = p.Context.Value(presetKey{}).(*preset)
		}
	}
}

// Preset returns a context for tests. A request that begins with it, or with a context derived from it, gets v in
// place of the result of Resolve. As after Set, the Close function is not called and the Vary fields are not added.
// If a key has several presets, the latest one counts.
//
//	r := httptest.NewRequest("GET", "/", nil)
//	srv.ServeHTTP(w, r.WithContext(reqctx.Preset(r.Context(), User, fake)))
//
// key must be the key that was given to [Provide], which [Host.PresetErr] checks. The properties session, params and
// ratelimit have unexported keys and cannot be preset. A [Batch] cannot be preset either. Instead, a test uses a
// memory store, a suitable request or another registry.
func Preset[T any](ctx context.Context, key Key[T], v T) context.Context {
	presetsUsed.Store(true)
	return &preset{ctx, key.id, key.name, v}
}

// PresetErr returns an error that wraps [ErrNoProperty] if a preset of h's context is for a property that neither h
// nor a context around it has. A server logs the error and answers such a request with a 500, so that a test does not
// go on without its fake.
func (h *Host) PresetErr() error {
	var errs []error
	for p := range presets(h.Context.Context) {
		if _, _, err := lookup(&h.Context, p.id, p.name); err != nil {
			errs = append(errs, fmt.Errorf("reqctx: preset of %q: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}
