package server

import (
	"context"
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

// Request is an HTTP request with its lazy properties. All of the standard request works on it. It is
// valid until the handler returns.
//
// It is a [context.Context], that of the request which the handler got, and carries the properties to the
// functions that are called with it: User.Get(req), Search.Require(req), store.List(req, id). A function
// that resolves a property uses the context that it is given instead: only that finds a cycle.
type Request struct {
	*http.Request
	ctx  *reqctx.Context
	base context.Context // not that of Request, which a handler may replace by one with a context within req
}

// Deadline returns the deadline of the request's context.
func (req *Request) Deadline() (deadline time.Time, ok bool) { return req.base.Deadline() }

// Done returns the channel of the request's context.
func (req *Request) Done() <-chan struct{} { return req.base.Done() }

// Err returns the error of the request's context.
func (req *Request) Err() error { return req.base.Err() }

// Value returns a value of the request's context.
func (req *Request) Value(key any) any {
	if c, ok := req.base.(*reqctx.Context); ok { // usually, and a static call is faster
		return c.Value(key)
	}
	return req.base.Value(key)
}

// Get returns a property by name, resolving it first if need be. The reserved
// names have these types: session is a [session.Session], params a
// [*params.Params], ratelimit a [ratelimit.Limit].
func (req *Request) Get(name string) (any, error) { return reqctx.Get(req.ctx, name) }

// Set makes v the property's value, after its Store function has accepted it.
func (req *Request) Set(name string, v any) error { return reqctx.Set(req.ctx, name, v) }

// Resolve resolves several properties in parallel and waits for all of them.
func (req *Request) Resolve(names ...string) error { return reqctx.Resolve(req.ctx, names...) }

// Session returns the session, without loading it: its own methods do that, and
// return the error if it fails.
func (req *Request) Session() session.Session {
	s, _ := session.From(req.ctx) // after an error, s returns it
	return s
}

// Params returns the parameters, without parsing them: its methods do that for
// the source that they need, and return the error if it fails.
func (req *Request) Params() *params.Params {
	p, _ := params.From(req.ctx) // after an error, p returns it
	return p
}

// RateLimit returns the limit of the only policy of the server and of the middleware around it, without
// asking the store: its methods do that. Without a policy, the methods return an error, and with
// several, an error that lists them: a [ratelimit.Policy] has the same methods. [ratelimit.From] also
// finds the policy of a [ratelimit.Middleware] within the server.
func (req *Request) RateLimit() ratelimit.Limit {
	l, _ := ratelimit.From(req.ctx) // after an error, l returns it
	return l
}

// Go runs a task beside the handler. It is cancelled when the handler returns,
// and the server's Shutdown waits for it. See [reqctx.Context.Go].
func (req *Request) Go(name string, fn func(ctx context.Context) error) error {
	return req.ctx.Go(name, fn)
}

// OnClose registers fn to be called after the response.
func (req *Request) OnClose(fn func() error) { req.ctx.OnClose(fn) }
