package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
)

// Options configure a [Server]. The zero value serves with sessions and counters
// in memory, no rate limit, and the timeouts below. A negative timeout is none.
type Options struct {
	// Session configures req.Session().
	Session session.Options
	// SessionStore keeps the sessions. Default: memory.
	SessionStore session.Store
	// RateLimits are the policies of req.RateLimit(name); the first is also that
	// of req.RateLimit().
	RateLimits []ratelimit.Policy
	// RateLimitStore keeps the counters. Default: memory.
	RateLimitStore ratelimit.Store
	// Params configures req.Params().
	Params params.Options

	// CrossOrigin says which cross-origin browser requests of unsafe methods (POST,
	// PUT, DELETE …) are let through; the others are answered 403. Default: those
	// from the same origin, and clients that are no browsers. The answer is the
	// server's; a deny handler is not asked.
	CrossOrigin *http.CrossOriginProtection
	// InsecureAllowCrossOrigin lets all of them through: any web page can then act
	// with the session of whoever looks at it.
	InsecureAllowCrossOrigin bool

	// Logger gets failed requests (5xx), panics and failed clean-ups. Default:
	// [slog.Default].
	Logger *slog.Logger
	// Observer sees every resolution of a property. Default: none.
	Observer reqctx.Observer
	// ServerTiming adds a Server-Timing field that says how long each property
	// took which was resolved before the header went out. It tells clients about
	// the inside of the server.
	ServerTiming bool

	// ReadHeaderTimeout bounds the reading of a request's header. Default: 10 s.
	ReadHeaderTimeout time.Duration
	// ReadTimeout bounds the reading of a whole request. Default: 1 min.
	ReadTimeout time.Duration
	// WriteTimeout bounds a response, from the end of the request's header on. A
	// handler that streams for longer moves the deadline with
	// [http.ResponseController.SetWriteDeadline]. Default: 1 min.
	WriteTimeout time.Duration
	// IdleTimeout bounds the wait for the next request on a connection.
	// Default: 2 min.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds a request's header. Default: 64 KiB.
	MaxHeaderBytes int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CrossOrigin == nil {
		o.CrossOrigin = http.NewCrossOriginProtection()
	}
	o.ReadHeaderTimeout = orDefault(o.ReadHeaderTimeout, 10*time.Second)
	o.ReadTimeout = orDefault(o.ReadTimeout, time.Minute)
	o.WriteTimeout = orDefault(o.WriteTimeout, time.Minute)
	o.IdleTimeout = orDefault(o.IdleTimeout, 2*time.Minute)
	if o.MaxHeaderBytes <= 0 {
		o.MaxHeaderBytes = 64 << 10
	}
	return o
}

// orDefault leaves a negative timeout as it is: to net/http, which takes another
// timeout for one that is 0, it is none.
func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// Server routes requests to handlers and gives each request its properties. Make
// it with [New]. It is an [http.Handler] that works in any other server; or it
// serves by itself with ListenAndServe or Serve. All methods may be called
// concurrently, but properties and handlers belong before the first request.
type Server struct {
	opts     Options
	reg      *reqctx.Registry
	sessions *session.Manager
	mux      *http.ServeMux
	log      *slog.Logger

	endings *lazy.Scope // the ends of requests that outlast their handlers
	conns   connSet     // raw connections

	base     context.Context // of all requests that this server accepts itself
	abort    context.CancelCauseFunc
	httpOnce sync.Once
	http     *http.Server
}

// New returns a server without handlers. Its error names the option that is
// wrong.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	s := &Server{
		opts:    o,
		reg:     reqctx.NewRegistry(reqctx.Options{Logger: o.Logger, Observer: o.Observer}),
		mux:     http.NewServeMux(),
		log:     o.Logger,
		endings: lazy.NewScope(context.Background()),
	}
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
		return fmt.Errorf("server: Options.Session: %w", err)
	}
	session.Provide(s.reg, s.sessions)
	if err = params.Provide(s.reg, s.opts.Params); err != nil {
		return fmt.Errorf("server: Options.Params: %w", err)
	}
	if len(s.opts.RateLimits) == 0 {
		return nil
	}
	store := s.opts.RateLimitStore
	if store == nil {
		if store, err = ratestore.New(ratestore.Options{}); err != nil {
			return err
		}
	}
	if err = ratelimit.Provide(s.reg, store, s.opts.RateLimits...); err != nil {
		return fmt.Errorf("server: Options.RateLimits: %w", err)
	}
	return nil
}

// Registry is where the application's own properties are provided. The names
// session, params and ratelimit (and what begins with one of these and a dot)
// are taken.
func (s *Server) Registry() *reqctx.Registry { return s.reg }

// Sessions manages the sessions outside of requests.
func (s *Server) Sessions() *session.Manager { return s.sessions }

// HandlerFunc answers a request. Straight-line code: it reads the properties it
// needs and returns the error that it cannot deal with. An error that is a
// [*Problem], or has a method Problem() (status int, members map[string]any), is
// the response; any other is logged and answered 500. A handler that has begun
// its response and then returns an error has the connection cut, so that the
// client does not take the half for the whole.
//
// A panic is logged and answered 500, with no property committed; so is a
// [runtime.Goexit]. Over HTTP/2 a stream ends only with a handler that returns: after a
// Goexit the client gets the whole response and then a stream error.
type HandlerFunc func(w http.ResponseWriter, req *Request) error

// HandleFunc routes requests that match pattern, as [http.ServeMux] defines it,
// to h. It panics if the pattern is malformed or conflicts with another.
func (s *Server) HandleFunc(pattern string, h HandlerFunc) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		g := w.(*gate)
		g.routed = true
		g.x.respond(g, h(g, g.x.request(r)))
	})
}

// Handle routes requests that match pattern to a standard handler. The request's
// context carries the properties: session.From(r.Context()) works.
func (s *Server) Handle(pattern string, h http.Handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		g := w.(*gate)
		g.routed = true
		g.x.ctx.SetRequest(r)
		h.ServeHTTP(g, r)
	})
}

// ServeHTTP answers one request. A server within itself goes on with the request
// as it is: the properties are the same and are committed once.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r, s.mux, false) }

// Wrap returns h with the server's properties in its requests' contexts:
// session.From(r.Context()) and the like work in h and in whatever h calls, be it a
// router of another package. Its responses pass the gate, which commits them. h does
// its own routing, and what it answers is left as it is. A handler that is wrapped
// again on the way, or is a Server itself, finds the properties and the gate that are
// there.
//
// A middleware within h that recovers a panic and responds, such as chi's Recoverer, makes
// it a response like any other: what the handler had written to its session is saved.
// Leave it out, or put it around the Wrap: a panic that reaches the server is logged and
// answered 500, with no property committed.
func (s *Server) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, h, true) })
}

// WrapFunc is [Server.Wrap] for straight-line code: it answers every request, with its own
// routing if there is any, and the error that it returns becomes the response as one of
// [Server.HandleFunc] does.
func (s *Server) WrapFunc(h HandlerFunc) http.Handler {
	return s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := w.(*gate)
		g.x.respond(g, h(g, g.x.request(r)))
	}))
}

// serve has h answer one request. routed says that all that h writes is its own.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, h http.Handler, routed bool) {
	if x := exchangeOf(r.Context()); x != nil && x.srv == s {
		x.nest(w, r, h, routed)
		return
	}
	x := new(exchange)
	r = x.begin(s, w, r)
	x.gate.routed = routed
	defer x.end()
	if err := s.checkOrigin(r); err != nil {
		x.gate.problem(&Problem{Status: http.StatusForbidden, Detail: "Cross-origin requests are not allowed here.", Err: err})
	} else {
		h.ServeHTTP(&x.gate, r)
	}
	x.settle()
}

func (s *Server) checkOrigin(r *http.Request) error {
	if s.opts.InsecureAllowCrossOrigin {
		return nil
	}
	return s.opts.CrossOrigin.Check(r)
}
