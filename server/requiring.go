package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Requirement is a condition that a route may have: a [reqctx.Key], a [*ratelimit.Policy],
// [session.Loaded], [session.LoggedIn], or a type of the application:
//
//	type role string
//
//	func (r role) Start(ctx context.Context) error { return User.Start(ctx) }
//	func (r role) Require(ctx context.Context) error {
//		u, err := User.Get(ctx)
//		if err == nil && (u == nil || u.Role != string(r)) {
//			err = server.Errorf(http.StatusForbidden, "Only for the role %s.", string(r))
//		}
//		return err
//	}
//
// [fmt.Sprint] formats it where routes are shown. Two requirements of one type with one text count as the
// same, so a type that contains functions needs a method String.
type Requirement interface {
	// Start begins to resolve the properties that Require reads, and returns at once. It must do
	// nothing else: a registration calls it with the context of a request that has ended, to find
	// properties that the server does not have. In a request, Start may not be called, and its error is
	// ignored: Require returns it.
	Start(ctx context.Context) error
	// Require waits, and returns the error that becomes the response, or nil.
	Require(ctx context.Context) error
}

// Property is a value that a route may prefetch: a [reqctx.Key] or [session.Loaded].
type Property interface {
	Requirement
	// Name is never called. Policies and [session.LoggedIn] do not have it, so that they cannot be
	// prefetched: that would charge, or seem to protect the route.
	Name() string
}

// RouteOption is an option of a route or a group: [Require] or [Prefetch]. The zero value does nothing.
type RouteOption struct {
	prefetch []Property
	require  [][]Requirement // each list begins when the one before it has been met
}

// Require has the requests of a route meet all requirements before the handler runs. The items start
// together, so that calls of a store usually share a round trip, and the server waits for them in the
// order of the list. The first one that fails is the response, and the handler does not run. A key
// fails if its property has an error; a nil value passes. A policy fails if it denies the request.
//
//	srv.HandleFunc("GET /search", search, server.Require(Search))
//
// The items behind the one that fails are not waited for: they are cancelled when the request ends,
// and a charge that was made stays. The response has the header fields of those that are resolved by
// then. So a denial is answered at once if it stands first, and behind a property that never returns, it
// is answered when the request ends, which may be never. Give such a property a Timeout. In another
// [http.Server] the response also waits until the cancelled items have returned.
//
// Several Require options run one after another. Require(User) before Require(API) charges nothing to
// strangers, and begins no work for them that goes on after their response. The first item usually runs
// on the handler's goroutine and the others on goroutines of their own. The first one does so as well if
// its property has a Timeout, or if a middleware such as [http.TimeoutHandler] has replaced the context.
// An item that reads the body needs a Require of its own, because net/http sends no response while
// another goroutine reads the body.
//
// Require panics if an item is nil. The registration of the route panics if the server does not have a
// property or a policy ([reqctx.ErrNoProperty]), so provide it first.
func Require(items ...Requirement) RouteOption {
	refuseNil("Require", items)
	return RouteOption{require: [][]Requirement{slices.Clone(items)}}
}

// Prefetch has the requests of a route begin to resolve these properties before they begin the first
// [Require], and waits for none. A handler that reads them one after another then waits for the longest
// instead of for all.
//
//	srv.HandleFunc("GET /account", account, server.Prefetch(session.Loaded, User))
//
// A prefetched property counts as read: if it is resolved when the header goes out, it commits and
// adds its Vary fields. The handler reads it like any other property and gets its error. A
// resolution that is still running when the handler returns is cancelled; in another [http.Server]
// the response then waits until it has returned. So prefetch the properties that nearly every request
// of the route reads, and none that charges, writes, or reads the request's body. Requests that don't
// reach the route, such as those that a middleware answers, prefetch nothing.
//
// Prefetch and the registration of the route panic as described at [Require].
func Prefetch(properties ...Property) RouteOption {
	refuseNil("Prefetch", properties)
	return RouteOption{prefetch: slices.Clone(properties)}
}

func refuseNil[T any](function string, items []T) {
	if i := slices.IndexFunc(items, func(item T) bool { return option.IsNil(item) }); i >= 0 {
		panic(fmt.Sprintf("server: %s: item %d is nil", function, i))
	}
}

// Requiring returns a middleware that requires the items, as [Require] does, before its handler runs.
// It is for the handlers of other routers below [Server.Wrap]. [WriteError] answers a failure. A
// property or a policy that the server does not have is found by the first request, which is answered
// 500. Requiring panics if an item is nil. It is not for [Server.Use], where it would also run for unknown
// routes, redirects and refused cross-origin requests: a group "/" requires something of all routes.
//
// A server that does not use this package limits requests with [ratelimit.Middleware].
func Requiring(items ...Requirement) func(http.Handler) http.Handler { return Require(items...).before }

// with returns o and then the others as one option.
func (o RouteOption) with(others []RouteOption) RouteOption {
	for _, other := range others {
		o.prefetch = slices.Concat(o.prefetch, other.prefetch)
		o.require = slices.Concat(o.require, other.require)
	}
	return o
}

// check panics if the server does not have what o names. at is the route, for the panic.
func (s *Server) check(at string, o RouteOption) {
	ended := reqctx.New(context.Background(), s.reg)
	_ = ended.Finish() // so that nothing begins
	items := slices.Concat(o.require...)
	for _, p := range o.prefetch {
		items = append(items, p)
	}
	for _, item := range items {
		if err := item.Start(ended); errors.Is(err, reqctx.ErrNoProperty) {
			panic(fmt.Errorf("server: %s: %w", at, err))
		}
	}
}

// before returns a handler that prefetches and requires what o names, and then calls next.
func (o RouteOption) before(next http.Handler) http.Handler {
	if len(o.prefetch)+len(o.require) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if x := exchangeOf(ctx); x != nil {
			x.host.SetRequest(r) // a router may work on a copy, which has the path values
		}
		for _, p := range o.prefetch {
			_ = p.Start(ctx) // its readers get the error
		}
		for _, items := range o.require {
			if err := requireAll(ctx, items); err != nil {
				WriteError(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// requireAll starts all items but the first, which runs on this goroutine, and then waits for them in
// their order.
func requireAll(ctx context.Context, items []Requirement) error {
	for i, item := range items {
		if i > 0 {
			_ = item.Start(ctx) // Require returns the error
		}
	}
	for _, item := range items {
		if err := item.Require(ctx); err != nil {
			return err
		}
	}
	return nil
}
