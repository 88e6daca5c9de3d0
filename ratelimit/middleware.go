package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/reqctx"
)

// MiddlewareOptions configures a [Middleware]. The zero value is usable.
type MiddlewareOptions struct {
	// FailOpen lets requests through uncharged when the store cannot answer (ErrStore). By default, they are answered
	// with a 503, because the limit may protect logins, and an attacker may overload the store.
	FailOpen bool
	// Answer writes the response to a request that is not let through, because of a [*DeniedError], ErrStore,
	// ErrNoKey, ErrTooLarge or an error of the policy's own functions. The header already has the rate limit's
	// fields. If Answer is nil and a server of package server is around the middleware, the server answers, as it
	// answers all errors. Without such a server, nil means problem+json with the error's status.
	Answer func(w http.ResponseWriter, r *http.Request, err error)
	// Logger gets the failures that were answered with a 5xx or let through, except failures that a server answers
	// and logs itself. Nil means [slog.Default].
	Logger *slog.Logger
}

// Middleware returns a standard middleware that takes from the policy before the handler runs. It is for servers that
// do not use package server, and limits whole handlers. Handlers use the charge with the policy's methods, or with
// [From]. Middleware returns an error that names the field if an option or the policy is wrong.
//
// If the request's server, or a middleware further out, has the same policy (the same pointer), Middleware uses that
// charge, and not its own store. Otherwise, the policy's functions get the request as it comes to the middleware: in
// front of an [http.ServeMux], it has no Pattern and no path values. A server within the middleware that also has the
// policy charges the request once more, so give the policy to only one of the two.
func Middleware(store Store, p *Policy, o MiddlewareOptions) (func(http.Handler) http.Handler, error) {
	if option.IsNil(store) {
		return nil, errors.New("ratelimit: Middleware: store is nil")
	}
	if err := Check(p); err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	m := &middleware{policy: p, settles: p.Settle != nil, opts: o, reg: reqctx.NewRegistry(reqctx.Options{Logger: o.Logger})}
	Provide(m.reg, store, p)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}, nil
}

type middleware struct {
	policy  *Policy
	settles bool // the policy has Settle
	opts    MiddlewareOptions
	reg     *reqctx.Registry // has the policy's properties
}

func (m *middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	p, ctx := m.policy, r.Context()
	var host *reqctx.Host // nil if the request has the policy's properties already
	if _, err := p.propertyKeys().take.Owner(ctx); err != nil {
		host = reqctx.New(ctx, m.reg)
		defer func() { _ = host.Finish() }() // Finish logs its errors
		ctx = &host.Context
		r = r.WithContext(ctx)
		host.SetRequest(r)
	}
	res, err := p.Take(ctx)
	if host != nil && m.settles && err == nil && res.Allowed {
		sw := &settlingWriter{ResponseWriter: w, host: host}
		next.ServeHTTP(sw, r)
		sw.commit(http.StatusOK) // the status if the handler has sent nothing
		return
	}
	if host != nil {
		_ = host.Commit(0, w.Header()) // adds the fields; the status is not known yet
	}
	if m.admit(w, r, res, err) {
		next.ServeHTTP(w, r)
	}
}

// admit reports whether the request is let through, and answers it otherwise.
func (m *middleware) admit(w http.ResponseWriter, r *http.Request, res Result, err error) bool {
	if err == nil {
		err = res.Err()
	}
	if err == nil {
		return true
	}
	open := m.opts.FailOpen && errors.Is(err, ErrStore)
	if write := problem.WriterOf(r.Context()); write != nil && m.opts.Answer == nil && !open {
		write(w, r, err) // the server's function, which also logs failures
		return false
	}
	status, members := problemFor(err)
	if open || status >= http.StatusInternalServerError {
		m.log(r, err, open)
	}
	switch {
	case open:
	case m.opts.Answer != nil:
		m.opts.Answer(w, r, err)
	default:
		problem.Write(w, status, members, err)
	}
	return open
}

func (m *middleware) log(r *http.Request, err error, open bool) {
	level, msg := slog.LevelError, "request refused: the rate limit failed"
	if open {
		msg = "request let through: the rate limit failed"
	}
	if r.Context().Err() != nil { // the client has left
		level = slog.LevelDebug
	}
	m.opts.Logger.Log(r.Context(), level, msg, "method", r.Method, "path", r.URL.Path, "error", err.Error())
}

// problemFor returns the response to an error.
func problemFor(err error) (status int, members map[string]any) {
	status, members = problem.Of(err)
	if status == http.StatusInternalServerError && errors.Is(err, context.Canceled) {
		status = http.StatusServiceUnavailable // the request was cancelled, or a call that it shared
	}
	return status, members
}
