package reqctx

import (
	"context"
	"net/http"
	"time"
)

// Prop defines a property. Every field may be left out.
type Prop[T any] struct {
	// Resolve computes the value. It runs at most once at a time for a request, except that another call may begin
	// after a Timeout, Set or Invalidate. Its context is the request's, even if the reader has another one. Resolve
	// must pass that context on when it reads other properties. Errors are kept for the request, except a
	// cancellation or deadline that is not the request's own. A property without Resolve has only the value that it
	// is set to.
	Resolve func(ctx context.Context) (T, error)
	// Store is called by Set, before the value changes. If it fails, Set returns its error.
	Store func(ctx context.Context, v T) error
	// Commit is called once, before the response's header goes out, if the property has a value by then. It gets the
	// response's status and header, and may add to the header. If Commit fails, the response becomes an error
	// response with another status, and the cookies that Commit has added are removed. In package server, the status
	// is that of the handler's error, even if WriteProblem answers with another one.
	Commit func(ctx context.Context, v T, status int, h http.Header) error
	// Close undoes Resolve. It is called after the response, once for each time that Resolve has run, the latest
	// first, with the result of Resolve. After a panic, the result is the zero value and a [*lazy.PanicError]. Close
	// is not called for a value that was set. Its context has the request's values and is not cancelled.
	Close func(ctx context.Context, v T, err error) error
	// Timeout limits the duration of a resolution. After it, readers get a [*TimeoutError], even if Resolve goes on.
	// A property with a timeout is resolved on a separate goroutine. The zero value means no timeout.
	Timeout time.Duration
	// Vary names the request headers that the value depends on. They are added to the response's Vary header if the
	// property was resolved, even if it was set or invalidated afterwards.
	Vary []string
	// Private hides the property from the functions that take a name. It can be read only with its key.
	Private bool
}

// binding is a property in a registry. Slot 0 is always empty.
type binding struct {
	ops     ops
	name    string
	id      int32
	slot    uint16
	timeout time.Duration
	vary    []string
	state   bool // provided by ProvideState
	private bool
	commits bool
	closes  bool
}

// newBinding returns a binding without a slot.
func newBinding[T any](key Key[T], p Prop[T]) *binding {
	return &binding{
		ops:     provided[T]{p},
		name:    key.name,
		id:      key.id,
		timeout: p.Timeout,
		vary:    p.Vary,
		private: p.Private,
		commits: p.Commit != nil,
		closes:  p.Close != nil && p.Resolve != nil,
	}
}
