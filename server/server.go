package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/lazyreq/lazyreq/internal/graceful"
	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
)

// Server routes requests to handlers and gives each request its properties. Make it with [New]. It is an
// [http.Handler] for any server, and it also serves by itself: see ListenAndServe and Serve. A Server is safe for
// concurrent use, but properties, middleware and handlers must be added before the first request.
type Server struct {
	opts     Options
	reg      *reqctx.Registry
	sessions *session.Manager
	mux      *http.ServeMux
	log      *slog.Logger

	handler   http.Handler  // the middleware around the mux
	innermost *http.Handler // inside the last middleware
	root      *Group        // contains all routes

	routesMu sync.Mutex // guards routes and groups, which are only appended to
	routes   []Route
	groups   []*Group

	observers *observers

	endings   *lazy.Scope     // runs the clean-ups of requests after their handlers, and raw connections
	accepting *lazy.Scope     // closes the listeners of raw connections; Shutdown and Close begin by closing it
	draining  context.Context // the context of accepting
	base      context.Context // the parent of requests on the server's own listeners
	abort     context.CancelCauseFunc
	httpOnce  sync.Once
	http      *graceful.Server
}

// New returns a server without handlers. It returns an error, usually an [*OptionError], if an option is out of range
// or contradicts another.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	seen := newObservers(o.Observers, o.Logger)
	s := &Server{
		opts:      o,
		reg:       reqctx.NewRegistry(reqctx.Options{Logger: o.Logger, Observer: seen.resolutions(), Callers: o.Callers}),
		observers: seen,
		mux:       http.NewServeMux(),
		log:       o.Logger,
		endings:   lazy.NewScope(context.Background()),
		accepting: lazy.NewScope(context.Background()),
	}
	s.handler, s.innermost = http.HandlerFunc(s.route), &s.handler
	s.root = &Group{srv: s}
	s.draining = s.accepting.Context()
	s.base, s.abort = context.WithCancelCause(context.Background())
	if err := s.provide(); err != nil {
		return nil, err
	}
	return s, nil
}

// provide adds the reserved properties.
func (s *Server) provide() (err error) {
	sessions := s.opts.SessionStore
	if sessions == nil {
		if sessions, err = memstore.New(memstore.Options{}); err != nil {
			return err
		}
	}
	if s.sessions, err = session.New(sessions, s.opts.Session); err != nil {
		return option.Prefix("server: Options.Session: ", "session", err)
	}
	session.Provide(s.reg, s.sessions)
	if err = s.opts.Params.Err(); err != nil {
		return option.Prefix("server: Options.Params: ", "params", err)
	}
	params.Provide(s.reg, s.opts.Params)
	if len(s.opts.RateLimits) == 0 {
		return nil
	}
	store := s.opts.RateLimitStore
	if store == nil {
		if store, err = ratestore.New(ratestore.Options{}); err != nil {
			return err
		}
	}
	if err = ratelimit.Check(s.opts.RateLimits...); err != nil {
		return option.Prefix("server: Options.RateLimits: ", "ratelimit", err)
	}
	ratelimit.Provide(s.reg, s.observers.around(store), s.opts.RateLimits...)
	return nil
}

// Registry returns the registry for the application's own properties. The names session, params and ratelimit are
// reserved, and so are names that begin with one of them and a dot.
func (s *Server) Registry() *reqctx.Registry { return s.reg }

// Sessions returns the manager of the sessions, for use outside of requests.
func (s *Server) Sessions() *session.Manager { return s.sessions }
