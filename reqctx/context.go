package reqctx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/lazy"
)

// inlineSlots is how many properties a registry may have (with the empty slot 0)
// before a request needs a second allocation for them. The library's own take ten,
// and three more for each further rate limit.
const inlineSlots = 25

// Context is one request: its context and its lazy properties. It is a
// [context.Context] itself, and every context derived from it leads back to it.
//
// A context that is made within another has that one's properties as well, unless its
// own registry has a property of the same name: as a middleware's has, which adds some.
//
// Make it with [New] or [Context.Init] and end it with [Context.Finish]. All
// methods may be called concurrently, except Init and SetRemoteAddr. A Context is
// never used for a second request, so that whoever still holds one gets
// [ErrFinished] and nobody else's properties.
type Context struct {
	context.Context
	table *table
	slots []atomic.Pointer[outcome] // an outcome is published here when it is done
	req   atomic.Pointer[http.Request]
	peer  string

	scope atomic.Pointer[lazy.Scope] // of everything on goroutines of the request's; nil until the first

	mu        sync.Mutex // never held while user code runs
	phase     phase
	commit    progress
	attempts  *attempt      // resolutions in progress that readers join
	last      *outcome      // the newest of what to commit and to close
	commitErr error         // what Commit returned
	commits   chan struct{} // closed when Commit is through; made by the first who waits for it
	taskErrs  []error

	inline [inlineSlots]atomic.Pointer[outcome]
}

// phase is where a request is in its life. It only grows.
type phase uint8

const (
	open phase = iota
	closing
	finished
)

// progress is how far Commit has come. It only grows, too.
type progress uint8

const (
	uncommitted progress = iota
	committing
	committed
)

type contextKey struct{}

// New returns the context of a request that begins now, with the properties that
// reg has now.
func New(ctx context.Context, reg *Registry) *Context {
	c := new(Context)
	c.Init(ctx, reg)
	return c
}

// Init makes c, which must be zero, what [New] returns. It is for a Context that
// is part of something larger.
func (c *Context) Init(ctx context.Context, reg *Registry) {
	c.Context = ctx
	c.table = reg.tab.Load()
	if n := len(c.table.bind); n <= inlineSlots {
		c.slots = c.inline[:n]
	} else {
		c.slots = make([]atomic.Pointer[outcome], n)
	}
	if presetsUsed.Load() {
		c.applyPresets()
	}
}

// From returns the request that ctx belongs to, or nil.
func From(ctx context.Context) *Context {
	if c, ok := ctx.(*Context); ok {
		return c
	}
	c, _ := ctx.Value(contextKey{}).(*Context)
	return c
}

// Value makes c findable by [From], and the scope of its tasks, if it has any, by
// [lazy.ScopeOf].
func (c *Context) Value(key any) any {
	switch key.(type) {
	case contextKey:
		return c
	case lazy.ScopeKey:
		return c.scope.Load()
	default:
		return c.Context.Value(key)
	}
}

// Request returns the HTTP request, or nil when there is none (a raw connection,
// a test).
func (c *Context) Request() *http.Request { return c.req.Load() }

// SetRequest says which HTTP request c belongs to. The server calls it, for each
// copy of the request that a handler gets.
func (c *Context) SetRequest(r *http.Request) { c.req.Store(r) }

// RemoteAddr returns the network address of the peer: that of the HTTP request, or
// else the one that was set, or "".
func (c *Context) RemoteAddr() string {
	if r := c.req.Load(); r != nil {
		return r.RemoteAddr
	}
	return c.peer
}

// SetRemoteAddr says who the peer is, where there is no HTTP request. It is to be
// called before anything else can read it.
func (c *Context) SetRemoteAddr(addr string) { c.peer = addr }

// Logger returns the registry's logger.
func (c *Context) Logger() *slog.Logger { return c.table.opts.Logger }

// Get returns a property by name. In a function that resolves a property, use
// [Get] with its ctx instead: c does not know who asks, so that it cannot tell a
// cycle from a slow resolution.
func (c *Context) Get(name string) (any, error) { return Get(c, name) }

// Set sets a property by name. The value must have the property's type.
func (c *Context) Set(name string, v any) error { return Set(c, name, v) }

// Resolve resolves several properties in parallel. See [Resolve].
func (c *Context) Resolve(names ...string) error { return Resolve(c, names...) }

// Get returns the property of that name of ctx's request, as [Key.Get] does.
func Get(ctx context.Context, name string) (any, error) {
	c, b, err := lookupName(ctx, name)
	if err != nil {
		return nil, err
	}
	out, err := c.resolve(ctx, b)
	if err != nil {
		return nil, err
	}
	return b.ops.value(out)
}

// Set sets the property of that name of ctx's request, as [Key.Set] does. A
// value of another type than the property's is refused with [ErrType].
func Set(ctx context.Context, name string, v any) error {
	c, b, err := lookupName(ctx, name)
	if err != nil {
		return err
	}
	return b.ops.setAny(ctx, c, b, v)
}

// Resolve resolves several properties of ctx's request in parallel and waits for
// all of them. It returns their errors, joined, each with the property's name;
// the properties keep them as well. When ctx ends first, Resolve returns its cause for
// each property that is missing. The properties start together, so that what they ask
// of a [Batch] is usually one call.
func Resolve(ctx context.Context, names ...string) error {
	props := make([]property, len(names))
	missing := 0
	for i, name := range names {
		c, b, err := lookupName(ctx, name)
		if err != nil {
			return err
		}
		props[i] = property{c, b}
		if !b.handle && c.slots[b.slot].Load() == nil {
			missing++
		}
	}
	if missing > 1 {
		for _, p := range props[:len(props)-1] {
			if err := p.c.startEarly(ctx, p.b); err != nil {
				return err
			}
		}
	}
	errs := make([]error, len(props))
	for i, p := range slices.Backward(props) { // the last one may run on this goroutine
		out, err := p.c.resolve(ctx, p.b)
		if err == nil {
			_, err = p.b.ops.value(out)
		}
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return errors.Join(errs...)
}

// property is one of a request's.
type property struct {
	c *Context
	b *binding
}

// lookupName is lookup by name.
func lookupName(ctx context.Context, name string) (*Context, *binding, error) {
	return find(ctx, name, func(t *table) *binding { return t.names[name] })
}

// load returns what is published for the property of a key.
func (c *Context) load(id int32) *outcome {
	if index := c.table.index; int(id) < len(index) {
		return c.slots[index[id]].Load()
	}
	return nil
}
