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
	"time"

	"github.com/lazyreq/lazyreq/lazy"
)

// inlineSlots is the number of slots that are part of a Context. A registry with more properties costs each request a
// second allocation. The library's own take nine: two of session, three of params, the state "ratelimit", and three of
// a policy. Each further policy takes three. Slot 0 is empty.
const inlineSlots = 21

// Context represents one request with its context and its lazy properties. It is a [context.Context], and [From]
// finds it in every context that is derived from it.
//
// A Context whose parent belongs to another Context, such as a middleware's, also has the properties of that Context,
// except those with a name that its own registry has.
//
// A server makes a Context as part of a [Host], and ends it with [Host.Finish]. A Context is safe for concurrent use.
// It is never reused. Code that still holds it after the request gets [ErrFinished] and never another client's
// properties.
type Context struct {
	context.Context
	table *table
	slots []atomic.Pointer[outcome] // of the resolved properties
	req   atomic.Pointer[http.Request]
	peer  string

	scope atomic.Pointer[lazy.Scope] // of the request's goroutines; nil until the first

	mu        sync.Mutex // never held while user code runs
	phase     phase
	attempts  *attempt      // resolutions in progress that readers join
	last      *outcome      // the newest outcome that is kept, or to be closed or added to Vary
	commitErr error         // the result of Commit
	commits   chan struct{} // closed when Commit returns; made by the first waiter

	inline [inlineSlots]atomic.Pointer[outcome]
}

// phase is the phase of a request's life. It only grows.
type phase uint8

const (
	open phase = iota
	committing
	committed
	closing
	finished
)

type contextKey struct{}

// From returns the innermost request that ctx belongs to, or nil.
func From(ctx context.Context) *Context {
	if c, ok := ctx.(*Context); ok {
		return c
	}
	c, _ := ctx.Value(contextKey{}).(*Context)
	return c
}

// Value returns c to [From], and otherwise the value of the request's context.
func (c *Context) Value(key any) any {
	if _, ok := key.(contextKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// Request returns the HTTP request, or nil if there is none, as on a raw connection.
func (c *Context) Request() *http.Request { return c.req.Load() }

// SetRequest sets the HTTP request. The server calls it for each copy that a handler gets.
func (c *Context) SetRequest(r *http.Request) { c.req.Store(r) }

// RemoteAddr returns the network address of the HTTP request's peer. Without an HTTP request, it returns the address
// that was passed to [Host.SetRemoteAddr], or "".
func (c *Context) RemoteAddr() string {
	if r := c.req.Load(); r != nil {
		return r.RemoteAddr
	}
	return c.peer
}

// Logger returns the registry's logger.
func (c *Context) Logger() *slog.Logger { return c.table.opts.Logger }

// Get returns the property of that name of ctx's request, as [Key.Get] does. A function that resolves another
// property must pass its own context, because otherwise cycles are not found.
func Get(ctx context.Context, name string) (any, error) {
	c, b, err := lookup(ctx, byName, name)
	if err != nil {
		return nil, err
	}
	out, err := c.resolve(ctx, b)
	if err != nil {
		return nil, err
	}
	return b.ops.value(out)
}

// Set sets the property of that name of ctx's request, as [Key.Set] does. It returns [ErrType] if v does not have the
// property's type.
func Set(ctx context.Context, name string, v any) error {
	c, b, err := lookup(ctx, byName, name)
	if err != nil {
		return err
	}
	return b.ops.setAny(ctx, c, b, v)
}

// Resolve resolves several properties of ctx's request in parallel and waits for all of them. It returns their
// errors, joined, each with the property's name. The properties also keep their errors. If ctx ends first, Resolve
// returns its cause for each property that is not resolved yet. The properties start together, so that their calls of
// a [Batch] usually become one.
func Resolve(ctx context.Context, names ...string) error {
	owners, props := make([]*Context, len(names)), make([]*binding, len(names))
	missing := 0
	for i, name := range names {
		c, b, err := lookup(ctx, byName, name)
		if err != nil {
			return err
		}
		if !b.state && c.slots[b.slot].Load() == nil {
			missing++
		}
		owners[i], props[i] = c, b
	}
	for i := 0; missing > 1 && i < len(names)-1; i++ {
		_ = owners[i].startEarly(ctx, props[i]) // resolve returns the error
	}
	errs := make([]error, len(names))
	for i, b := range slices.Backward(props) { // the last one may run on this goroutine
		out, err := owners[i].resolve(ctx, b)
		if err == nil {
			_, err = b.ops.value(out)
		}
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return errors.Join(errs...)
}

var (
	// ErrNoRequest means that a context carries no request.
	ErrNoRequest = errors.New("reqctx: the context carries no request of a server, of Server.Wrap or of reqctx.New")
	// ErrNoProperty means that the request's registry has no such property.
	ErrNoProperty = errors.New("reqctx: no such property")
	// ErrNoValue means that a property without a Resolve function was not set.
	ErrNoValue = errors.New("reqctx: the property was not set and has no Resolve function")
	// ErrType means that a property was set by name to a value of another type.
	ErrType = errors.New("reqctx: value of the wrong type")
	// ErrCommitted means that a property was set after the response's header had gone out.
	ErrCommitted = errors.New("reqctx: the response header is already committed")
	// ErrFinished means that the request is closing or finished.
	ErrFinished = errors.New("reqctx: the request is finished")
)

// TimeoutError is the error of a property that took longer than its Timeout. It wraps [context.DeadlineExceeded]. It
// is not kept, so the next Get tries again.
type TimeoutError struct {
	Name  string
	After time.Duration
}

// Error names the property and its timeout.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("reqctx: property %q took longer than %v", e.Name, e.After)
}

// Unwrap returns [context.DeadlineExceeded].
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// Problem returns 503, the status of the response to the error.
func (e *TimeoutError) Problem() (status int, members map[string]any) {
	return http.StatusServiceUnavailable, nil
}

// named adds the name of the property or task to err.
func named(err error, name string) error {
	return fmt.Errorf("%w: %q", err, name)
}
