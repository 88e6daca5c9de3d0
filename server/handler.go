package server

import (
	"fmt"
	"net/http"

	"github.com/lazyreq/lazyreq/internal/option"
)

// HandlerFunc answers a request. It reads the properties that it needs, and returns the errors that it does not
// handle. An error that is a [*Problem] or has a method Problem() (status int, members map[string]any) becomes that
// response. Errors of the request's body have such a method, because they are faults of the client. Any other error
// is logged and answered with 500. If the handler has begun its response, an error cuts the connection, so that the
// client does not mistake a part for the whole.
//
// A panic is logged and answered with 500, and no property is committed. A [runtime.Goexit] is logged and ends the
// connection or the HTTP/2 stream.
type HandlerFunc func(w http.ResponseWriter, req *Request) error

// HandleFunc routes requests that match pattern, as [http.ServeMux] defines it, to h. It panics if the pattern is
// malformed or conflicts with another, if h is nil, or if an option is wrong.
//
// A request passes, in this order, the middleware of [Server.Use], the mux, the middleware of [Group.Use], the
// prefetches, the requirements of the group and then of the route, and h. A refused cross-origin request only passes
// the middleware of [Server.Use].
func (s *Server) HandleFunc(pattern string, h HandlerFunc, options ...RouteOption) {
	s.root.HandleFunc(pattern, h, options...)
}

// Handle routes requests that match pattern to a standard handler. It finds the properties in the request's context,
// for example with session.From(r.Context()), and answers errors with [WriteError]. Handle panics as
// [Server.HandleFunc] does.
func (s *Server) Handle(pattern string, h http.Handler, options ...RouteOption) {
	s.root.Handle(pattern, h, options...)
}

// Use puts standard middleware around everything that the server answers: its handlers, the 404 and 405 of unknown
// routes, OPTIONS, and the 403 of cross-origin requests. The first is the outermost. It is for concerns of all
// requests, such as request ids, CORS, compression and tracing. Call Use before the first request. Middleware of a
// later call is inside that of an earlier one. Use panics if a middleware is nil or returns nil.
//
// A middleware has the request's properties in its context. Its response passes the gate, which commits the
// properties, and [WriteError] answers its errors. It may answer in place of the handler and may replace the writer.
// The context that it passes on must be derived from the request's. Otherwise the request begins again: properties are
// resolved, policies charged and observers called a second time. Handlers given to [Server.Wrap] do not have this
// middleware, but that of their own router.
func (s *Server) Use(middleware ...func(http.Handler) http.Handler) {
	refuseNil("Use", middleware)
	for i, m := range middleware {
		next := &nextHandler{http.HandlerFunc(s.route)}
		h := m(next)
		if h == nil {
			panic(fmt.Sprintf("server: Use: middleware %d returned a nil handler", i))
		}
		*s.innermost = h
		s.innermost = &next.Handler
	}
}

// nextHandler is the handler inside a middleware: the mux, or the middleware of a later Use.
type nextHandler struct{ http.Handler }

// route passes r to the mux.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	g, ok := w.(*gate)
	if !ok || g.x.srv != s || r != g.x.made { // a middleware has replaced the writer or the request
		x := exchangeOf(r.Context())
		if x == nil || x.srv != s { // and has lost the context
			s.serve(w, r, http.HandlerFunc(s.route), false)
			return
		}
		g = x.gateOn(w)
		g.x.host.SetRequest(r) // for the answer to an unknown route
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

// ServeHTTP answers one request. A server that is mounted in itself continues the same request, with the same
// properties and one commit. Its middleware runs again.
//
// Within another [http.Server], the response ends only when the request's tasks, resolutions and Close functions have
// returned. On the server's own listeners, the response does not wait for them.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r, s.handler, false) }

// Wrap returns a handler that calls h with the server's properties in the request's context. They are available in h
// and in every handler that h calls, such as a router of another package. Responses pass the gate, which commits the
// properties. h does its own routing, and its responses are not changed. [WriteError] answers errors. A nested Wrap,
// or a Server inside h, uses the same properties and gate. Wrap panics if h is nil.
//
// If a middleware inside h recovers a panic and responds, as chi's Recoverer does, this is an ordinary response: the
// handler's changes of the session are saved. Leave such a middleware out or put it around the Wrap. A panic that
// reaches the server is logged and answered with 500, and no property is committed.
func (s *Server) Wrap(h http.Handler) http.Handler {
	if option.IsNil(h) {
		panic("server: Wrap: the handler is nil")
	}
	return s.WrapFunc(func(w http.ResponseWriter, req *Request) error { h.ServeHTTP(w, req.Request); return nil })
}

// WrapFunc is [Server.Wrap] for a handler that returns an error, which becomes the response as in
// [Server.HandleFunc]. h answers every request and does its own routing.
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

// serve calls h with a gate. accepted reports whether the request came from one of the server's own listeners.
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

// refuse returns an error if r may not reach the handlers. It is called before the middleware and answered inside it.
func (s *Server) refuse(r *http.Request) error {
	if s.opts.InsecureAllowCrossOrigin {
		return nil
	}
	if err := s.opts.CrossOrigin.Check(r); err != nil {
		return &Problem{Status: http.StatusForbidden, Detail: crossOriginDetail, Err: err}
	}
	return nil
}

// crossOriginDetail is written for the developer who sees it first.
const crossOriginDetail = "This is a cross-origin browser request, which this server does not allow: " +
	"its Origin or Sec-Fetch-Site header names another site. " +
	"To allow an origin, the server adds it to server.Options.CrossOrigin."
