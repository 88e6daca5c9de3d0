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

// Request is an HTTP request with its lazy properties. It embeds the standard request, and is valid until the handler
// returns.
//
// It also implements [context.Context], with the context of the request, so that functions can get the properties
// from it: User.Get(req), Search.Require(req), store.List(req, id). Functions that resolve a property must use the
// context that they are given, because only this one detects cycles.
type Request struct {
	*http.Request
	ctx  *reqctx.Context
	base context.Context // of the request that the handler got; a handler may replace Request by one whose context contains req
}

// Deadline returns the deadline of the request's context.
func (req *Request) Deadline() (deadline time.Time, ok bool) { return req.base.Deadline() }

// Done returns the channel of the request's context.
func (req *Request) Done() <-chan struct{} { return req.base.Done() }

// Err returns the error of the request's context.
func (req *Request) Err() error { return req.base.Err() }

// Value returns a value of the request's context.
func (req *Request) Value(key any) any {
	if c, ok := req.base.(*reqctx.Context); ok { // the usual case; a static call is faster
		return c.Value(key)
	}
	return req.base.Value(key)
}

// Get returns a property by name and resolves it if necessary. The reserved names have these types: session is a
// [session.Session], params is a [*params.Params], and ratelimit is a [ratelimit.Limit].
func (req *Request) Get(name string) (any, error) { return reqctx.Get(req.ctx, name) }

// Set makes v the property's value, after its Store function has accepted it.
func (req *Request) Set(name string, v any) error { return reqctx.Set(req.ctx, name, v) }

// Resolve resolves several properties in parallel and waits for all of them.
func (req *Request) Resolve(names ...string) error { return reqctx.Resolve(req.ctx, names...) }

// Session returns the session without loading it. Its methods load it, and return the error if that fails.
func (req *Request) Session() session.Session {
	s, _ := session.From(req.ctx) // after an error, s returns it
	return s
}

// Params returns the parameters without parsing them. Its methods parse the source that they need, and return the
// error if that fails.
func (req *Request) Params() *params.Params {
	p, _ := params.From(req.ctx) // after an error, p returns it
	return p
}

// RateLimit returns the limit of the request's only policy, which belongs to the server or to a
// [ratelimit.Middleware] around it. The limit's methods call the store. If there is no policy, or more than one, they
// return an error. In a request with several policies, call the methods of one [ratelimit.Policy] instead. To find
// the policy of a [ratelimit.Middleware] inside the server, use [ratelimit.From].
func (req *Request) RateLimit() ratelimit.Limit {
	l, _ := ratelimit.From(req.ctx) // after an error, l returns it
	return l
}

// Go runs a task beside the handler. The task is cancelled when the handler returns, and the server's Shutdown waits
// for it. See [reqctx.Context.Go].
func (req *Request) Go(name string, fn func(ctx context.Context) error) error {
	return req.ctx.Go(name, fn)
}

// OnClose registers fn to be called after the response.
func (req *Request) OnClose(fn func() error) { req.ctx.OnClose(fn) }

// BySession returns a key function that counts requests by session. It loads the session. Only sessions that exist in
// the store count, so an invented cookie gets no new quota. For a request without a session, the error is
// [ratelimit.ErrNoKey]. A client can drop its cookie, so combine it: ratelimit.FirstOf(server.BySession(),
// ratelimit.ByIP()). A visitor can still begin many sessions; only users who have logged in are identified.
func BySession() ratelimit.KeyFunc {
	return func(ctx context.Context, _ *http.Request) (string, error) {
		s, err := session.From(ctx)
		if err != nil {
			return "", err
		}
		return s.ID() // "" is no key
	}
}

// ByUser returns a key function that counts requests by the user to whom the session is bound. All sessions of a user
// share the key. It loads the session. For a request without a user, the error is [ratelimit.ErrNoKey]; combine it:
// ratelimit.FirstOf(server.ByUser(), ratelimit.ByIP()).
func ByUser() ratelimit.KeyFunc {
	return func(ctx context.Context, _ *http.Request) (string, error) {
		s, err := session.From(ctx)
		if err != nil {
			return "", err
		}
		return s.User() // "" is no key
	}
}
