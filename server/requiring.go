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

// Requirement is a condition that a route may have: a [reqctx.Key], a [*ratelimit.Policy], [session.Loaded],
// [session.LoggedIn], or a type of the application, such as a role of the user.
//
// Lists of routes format requirements with [fmt.Sprint]. Two requirements of the same type with the same text count as
// equal, so a type that contains functions needs a method String.
type Requirement interface {
	// Start begins to resolve the properties that Require reads and returns at once. It must do nothing else. To find
	// missing properties, registrations call it with the context of a request that has ended. For a request, Start is
	// not always called and its error is ignored, because Require returns it.
	Start(ctx context.Context) error
	// Require waits. Its error becomes the response.
	Require(ctx context.Context) error
}

// Property is a value that a route may prefetch: a [reqctx.Key] or [session.Loaded].
type Property interface {
	Requirement
	// Name is never called. It excludes policies, because a prefetch would charge them, and [session.LoggedIn],
	// because a prefetch would not protect the route.
	Name() string
}

// RouteOption is an option of a route or a group: [Require] or [Prefetch]. The zero value does nothing.
type RouteOption struct {
	prefetch []Property
	require  [][]Requirement // each list begins when the one before it has been met
}

// Require makes requests of a route meet all requirements before the handler runs. The items start together, so that
// their store calls usually share a round trip. The server waits for them in the order of the list. The first error
// becomes the response, and the handler does not run. A key fails if its property has an error; a nil value passes. A
// policy fails if it denies the request.
//
//	srv.HandleFunc("GET /search", search, server.Require(Search))
//
// After a failure, the server does not wait for later items. They are cancelled when the request ends, but charges
// remain. The response has the header fields of items that are resolved by then. An error behind an item that never
// returns waits until the request ends, so give slow properties a Timeout. Within another [http.Server], the response
// also waits until the cancelled items have returned.
//
// Several Require options run one after another. For example, Require(User) before Require(API) charges nothing to
// strangers and starts no other work for them. The first item usually runs on the handler's goroutine, and the others
// run on their own. The first one does, too, if its property has a Timeout or if a middleware such as
// [http.TimeoutHandler] has replaced the context. An item that reads the body needs a separate Require, because
// net/http sends no response while another goroutine reads the body.
//
// Require panics if an item is nil. The registration of the route panics with [reqctx.ErrNoProperty] if the server
// does not have a property or a policy, so provide it first.
func Require(items ...Requirement) RouteOption {
	refuseNil("Require", items)
	return RouteOption{require: [][]Requirement{slices.Clone(items)}}
}

// Prefetch makes requests of a route start to resolve properties before the first [Require]. It does not wait, so a
// handler that reads them one after another only waits for the slowest.
//
//	srv.HandleFunc("GET /account", account, server.Prefetch(session.Loaded, User))
//
// A prefetched property counts as read: if it is resolved when the header is sent, it is committed and adds its Vary
// fields. The handler reads it like any other property and gets its error. A resolution that is still running when
// the handler returns is cancelled. Within another [http.Server], the response then waits until it has returned. So
// prefetch only properties that nearly every request of the route reads, and none that charges, writes, or reads the
// body. Requests that do not reach the route prefetch nothing.
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

// Requiring returns a middleware that requires the items before its handler runs, as [Require] does. It is for
// handlers of other routers below [Server.Wrap]. [WriteError] answers a failure. If the server does not have a
// property or a policy, requests are answered with 500. Requiring panics if an item is nil. Do not use it with
// [Server.Use], where it would also run for unknown routes, redirects and refused cross-origin requests; a group "/"
// requires something of all routes.
//
// Servers that do not use this package limit requests with [ratelimit.Middleware].
func Requiring(items ...Requirement) func(http.Handler) http.Handler { return Require(items...).before }

// with returns the combination of o and the others.
func (o RouteOption) with(others []RouteOption) RouteOption {
	for _, other := range others {
		o.prefetch = slices.Concat(o.prefetch, other.prefetch)
		o.require = slices.Concat(o.require, other.require)
	}
	return o
}

// check panics if the server does not have a property or a policy of o. at names the route in the panic.
func (s *Server) check(at string, o RouteOption) {
	ended := reqctx.New(context.Background(), s.reg)
	_ = ended.Finish() // so that Start resolves nothing
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

// before returns a handler that starts the prefetches, requires the items, and then calls next.
func (o RouteOption) before(next http.Handler) http.Handler {
	if len(o.prefetch)+len(o.require) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if x := exchangeOf(ctx); x != nil {
			x.host.SetRequest(r) // the copy of a router has the path values
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

// requireAll requires all items. The first one runs on this goroutine, so it is not started before.
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
