package server

import (
	"fmt"
	"net/http"
	"regexp"

	"github.com/lazyreq/lazyreq/internal/option"
)

// HandlerFunc answers a request. Straight-line code: it reads the properties it needs and
// returns the error that it cannot deal with. An error that is a [*Problem], or has a method
// Problem() (status int, members map[string]any), is the response; any other is logged and
// answered 500. The errors of the request's body have such a method: they are the client's fault.
// If a handler has begun its response and then returns an error, the connection is cut, so that
// the client does not take the part for the whole.
//
// A panic is logged and answered 500, with no property committed; so is a [runtime.Goexit].
// Over HTTP/2 a stream ends only with a handler that returns: after a Goexit the client gets the
// whole response and then a stream error.
type HandlerFunc func(w http.ResponseWriter, req *Request) error

// HandleFunc routes requests that match pattern, as [http.ServeMux] defines it, to h. It panics
// if the pattern is malformed or conflicts with another, if h is nil, or if an option is wrong.
//
// A request passes, in this order, the middleware of [Server.Use], the mux, the middleware of
// [Group.Use], the prefetches, the requirements of the group and then of the route, and h. A
// cross-origin request that is refused passes only the middleware of [Server.Use].
func (s *Server) HandleFunc(pattern string, h HandlerFunc, options ...RouteOption) {
	s.root.HandleFunc(pattern, h, options...)
}

// Handle routes requests that match pattern to a standard handler. The request's context
// carries the properties: session.From(r.Context()) works. [WriteError] answers errors. It panics
// as [Server.HandleFunc] does.
func (s *Server) Handle(pattern string, h http.Handler, options ...RouteOption) {
	s.root.Handle(pattern, h, options...)
}

// registeredAt is what a panic of the mux adds to a pattern: the line of s.handle.
var registeredAt = regexp.MustCompile(` \(registered at [^)]*\)`)

// handle adds h to the mux, as the handler of a route with the handler given.
func (s *Server) handle(pattern string, given any, h http.HandlerFunc) {
	defer func() {
		if v := recover(); v != nil {
			panic("server: " + registeredAt.ReplaceAllString(fmt.Sprint(v), ""))
		}
	}()
	s.mux.Handle(pattern, routeHandler{h, given})
}

// Use puts standard middleware around everything that the server answers: its handlers, the 404
// and 405 of unknown routes, OPTIONS, and the 403 of cross-origin requests. The first is the
// outermost. It is for what has nothing to do with single handlers: request ids, CORS,
// compression, tracing.
//
// Middleware runs once for a request, within it: the properties are in the request's context,
// what the middleware writes passes the gate, which commits them, and [WriteError] answers
// errors. It may answer instead of the handler, and may replace the writer. The context that it passes on
// must be derived from the request's: otherwise the request begins again, resolves its properties and
// charges its policies a second time, and observers are called twice. Call Use before the
// first request, as often as you like: later middleware is within earlier. Use panics if a
// middleware is nil or returns nil. Handlers given to [Server.Wrap] have the middleware of their own
// router.
func (s *Server) Use(middleware ...func(http.Handler) http.Handler) {
	refuseNil("Use", middleware)
	s.opaque.Store(true)
	if s.innermost == nil {
		outermost := &nextHandler{http.HandlerFunc(s.route)}
		s.innermost = outermost
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x := w.(*gate).x
			if x.chained { // the server is within itself
				s.route(w, r)
				return
			}
			x.chained = true
			outermost.ServeHTTP(w, r)
		})
	}
	for i, m := range middleware {
		inner := &nextHandler{http.HandlerFunc(s.route)}
		h := m(inner)
		if h == nil {
			panic(fmt.Sprintf("server: Use: middleware %d returned a nil handler", i))
		}
		s.innermost.Handler = h
		s.innermost = inner
	}
}

// nextHandler is the handler within a middleware: the mux, or another middleware once there is one. So
// each middleware is made once, however often Use is called.
type nextHandler struct{ http.Handler }

// route has the mux answer r.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	g, ok := w.(*gate)
	if !ok || g.x.srv != s { // a middleware has replaced the writer
		x := exchangeOf(r.Context())
		if x == nil || x.srv != s { // and the context: begin again
			s.serve(w, r, http.HandlerFunc(s.route), false)
			return
		}
		g = x.gateOn(w)
	}
	if r != g.x.made {
		g.x.host.SetRequest(r) // a middleware's copy, for the answer to an unknown route
	}
	defer g.x.endHandler(r)
	if g.x.refused != nil {
		g.x.respond(g, r, g.x.refused)
		return
	}
	g.routed = false
	s.mux.ServeHTTP(g, r)
	g.routed = true
}

// ServeHTTP answers one request. A server within itself goes on with the request as it is: the
// properties are the same and are committed once.
//
// In another [http.Server] the response ends only when the request's tasks, resolutions and Close
// functions have returned. On the server's own listeners it waits for none of them.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r, s.handler, false) }

// Wrap returns h with the server's properties in its requests' contexts:
// session.From(r.Context()) and the like work in h and in whatever h calls, such as a router of
// another package. Its responses pass the gate, which commits them. h does its own routing, and
// its responses are left as they are; [WriteError] answers errors. A handler that is wrapped
// again on the way, or is a Server itself, finds the properties and the gate that are there. Wrap
// panics if h is nil.
//
// A middleware within h that recovers a panic and responds, such as chi's Recoverer, makes it a
// response like any other: what the handler had written to its session is saved. Leave it out,
// or put it around the Wrap: a panic that reaches the server is logged and answered 500, with
// no property committed.
func (s *Server) Wrap(h http.Handler) http.Handler {
	if option.IsNil(h) {
		panic("server: Wrap: the handler is nil")
	}
	return s.WrapFunc(func(w http.ResponseWriter, req *Request) error { h.ServeHTTP(w, req.Request); return nil })
}

// WrapFunc is [Server.Wrap] for straight-line code: it answers every request, with its own
// routing if there is any, and the error that it returns becomes the response as one of
// [Server.HandleFunc] does.
func (s *Server) WrapFunc(h HandlerFunc) http.Handler {
	if h == nil {
		panic("server: WrapFunc: the handler is nil")
	}
	wrapped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := w.(*gate)
		err := g.x.refused
		if err == nil {
			err = h(g, g.x.request(r))
		}
		g.x.respond(g, r, err)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, wrapped, false) })
}

// serve has h, which gets a gate, answer one request. accepted reports that a listener of the
// server's own has brought it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, h http.Handler, accepted bool) {
	if x := exchangeOf(r.Context()); x != nil && x.srv == s {
		outer := x.host.Request()
		defer x.endHandler(r)
		h.ServeHTTP(x.gateOn(w), r)
		x.host.SetRequest(outer)
		return
	}
	x := &exchange{accepted: accepted}
	r = x.begin(s, w, r)
	defer x.end()
	h.ServeHTTP(&x.gate, r)
	x.complete()
}

// refuse returns an error if r may not reach the handlers. They would have answered it else, so
// the middleware sees it, too.
func (s *Server) refuse(r *http.Request) error {
	if s.opts.InsecureAllowCrossOrigin {
		return nil
	}
	if err := s.opts.CrossOrigin.Check(r); err != nil {
		return &Problem{Status: http.StatusForbidden, Detail: crossOriginDetail, Err: err}
	}
	return nil
}

// crossOriginDetail is for the developer who meets it first.
const crossOriginDetail = "This is a cross-origin browser request, which this server does not allow: " +
	"its Origin or Sec-Fetch-Site header names another site. " +
	"To allow an origin, the server adds it to server.Options.CrossOrigin."
