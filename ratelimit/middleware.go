package ratelimit

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/lazyreq/lazyreq/reqctx"
)

// MiddlewareOptions configure a [Middleware]. The zero value answers what it does not let
// through with problem+json.
type MiddlewareOptions struct {
	// FailOpen lets requests through uncharged when the store cannot answer (ErrStore).
	// By default they are answered 503: a limit may be what protects logins, and one
	// that falls with its store can be made to fall.
	FailOpen bool
	// Answer writes the response to a request that is not let through, because of a
	// [*DeniedError], ErrStore, ErrNoKey, ErrTooLarge or an error of the policy's own
	// functions. The rate limit's fields are in the header. Default: problem+json with
	// the status that the error stands for, 429 for a denial.
	Answer func(w http.ResponseWriter, r *http.Request, err error)
	// Logger gets the failures that were answered 5xx or let through. Default:
	// [slog.Default].
	Logger *slog.Logger
}

// Middleware returns a standard middleware that takes from the policy before the
// handler runs: for servers that do not use package server, and for handlers that are
// to be limited as a whole. An error names the field that is wrong.
//
// Handlers find the charge with [From]. A request is charged once by a policy, however
// many middlewares and [Limit.Take]s it meets: policies are the same if they have the
// same name, store and rules (as far as they can be compared: Key, Cost and RulesFor
// are taken to be those of the first).
//
// Key, Cost and RulesFor get the request as it comes to the middleware. Outside of the
// [http.ServeMux] it has no Pattern and no path values yet.
func Middleware(store Store, p Policy, o MiddlewareOptions) (func(http.Handler) http.Handler, error) {
	if store == nil {
		return nil, errors.New("ratelimit: Middleware: store is nil")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if o.Answer == nil {
		o.Answer = writeProblem
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	m := &middleware{policy: newLimited(p, store), opts: o, reg: reqctx.NewRegistry(reqctx.Options{Logger: o.Logger})}
	reqctx.ProvideMemo(m.reg, refunds, refund)
	m.policy.provide(m.reg, true)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}, nil
}

type middleware struct {
	policy *limited
	opts   MiddlewareOptions
	reg    *reqctx.Registry // of the passages
}

func (m *middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if passageOf(r.Context(), m.policy) != nil {
		next.ServeHTTP(w, r)
		return
	}
	if l := m.property(r); l != nil {
		// Its server writes the header.
		res, err := l.Take()
		if m.admits(w, r, res, err) {
			next.ServeHTTP(w, r)
		}
		return
	}
	pass := m.enter(r)
	defer pass.end()
	var res Result
	if pass.charge != nil {
		res = pass.charge.sum
		pass.charge.writeHeader(w.Header())
	}
	if m.admits(w, r, res, pass.err) {
		next.ServeHTTP(w, r.WithContext(pass))
	}
}

// property returns the limit of the same policy that the request has, nil if it has none.
func (m *middleware) property(r *http.Request) *Limit {
	if reqctx.From(r.Context()) == nil {
		return nil
	}
	l, err := m.policy.keys.limit.Get(r.Context())
	if err != nil || !l.use.policy.same(m.policy) {
		return nil
	}
	return l
}

// admits tells whether the request is let through, and answers it otherwise.
func (m *middleware) admits(w http.ResponseWriter, r *http.Request, res Result, err error) bool {
	if err == nil && res.Allowed {
		return true
	}
	open := m.opts.FailOpen && errors.Is(err, ErrStore)
	if err == nil {
		err = res.Err()
	}
	if status, _ := problemOf(err); open || status >= http.StatusInternalServerError {
		m.log(r, err, open)
	}
	if !open {
		m.opts.Answer(w, r, err)
	}
	return open
}

func (m *middleware) log(r *http.Request, err error, open bool) {
	level, msg := slog.LevelError, "request refused: its rate limit failed"
	if open {
		msg = "request let through: its rate limit failed"
	}
	if r.Context().Err() != nil { // the client is gone: nobody's fault
		level = slog.LevelDebug
	}
	m.opts.Logger.Log(r.Context(), level, msg,
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("error", fmt.Sprint(err)))
}
