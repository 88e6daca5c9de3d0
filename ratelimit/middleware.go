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

// MiddlewareOptions configure a [Middleware]. The zero value is usable.
type MiddlewareOptions struct {
	// FailOpen lets requests through uncharged when the store cannot answer (ErrStore). By default
	// they are answered 503: the limit may protect logins, and an attacker may overload the store.
	FailOpen bool
	// Answer writes the response to a request that is not let through, because of a
	// [*DeniedError], ErrStore, ErrNoKey, ErrTooLarge or an error of the policy's own functions.
	// The header has the rate limit's fields. Nil means that a server of package server, within which
	// the middleware is, answers as it answers all errors. Without one, nil means problem+json with
	// the error's status.
	Answer func(w http.ResponseWriter, r *http.Request, err error)
	// Logger gets the failures that were answered 5xx or let through, except those that a server
	// answers, which has its own logger. Nil means [slog.Default].
	Logger *slog.Logger
}

// Middleware returns a standard middleware that takes from the policy before the handler runs: for
// servers that do not use package server, and to limit whole handlers. An error names the field
// that is wrong. Handlers find the charge with the policy's methods, or with [From].
//
// If the request's server, or a middleware further out, has the same policy (the same pointer),
// Middleware uses that charge, and not its own store. Otherwise, the policy's functions get the
// request as it comes to the middleware: in front of an [http.ServeMux], it has no Pattern and no path
// values. A server within the middleware that has the policy, too, charges the request once more: give
// the policy to one of the two.
func Middleware(store Store, p *Policy, o MiddlewareOptions) (func(http.Handler) http.Handler, error) {
	if option.IsNil(store) {
		return nil, errors.New("ratelimit: Middleware: store is nil")
	}
	if err := Check(p); err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	m := &middleware{policy: p, opts: o, reg: reqctx.NewRegistry(reqctx.Options{Logger: o.Logger})}
	Provide(m.reg, store, p)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}, nil
}

type middleware struct {
	policy *Policy
	opts   MiddlewareOptions
	reg    *reqctx.Registry // of the policy's properties
}

func (m *middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	p, ctx := m.policy, r.Context()
	var host *reqctx.Host // of the policy's properties, unless the request has them already
	if _, err := p.propertyKeys().take.Owner(ctx); err != nil {
		host = reqctx.New(ctx, m.reg)
		defer func() { _ = host.Finish() }() // which logs its errors
		ctx = &host.Context
		r = r.WithContext(ctx)
		host.SetRequest(r)
	}
	res, err := p.Take(ctx)
	if host != nil {
		_ = host.Commit(0, w.Header()) // the fields; the status is not known yet
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
		write(w, r, err) // the server's, which logs a failure
		return false
	}
	if status, _ := problemFor(err); open || status >= http.StatusInternalServerError {
		m.log(r, err, open)
	}
	switch {
	case open:
	case m.opts.Answer != nil:
		m.opts.Answer(w, r, err)
	default:
		writeProblem(w, err)
	}
	return open
}

func (m *middleware) log(r *http.Request, err error, open bool) {
	level, msg := slog.LevelError, "request refused: the rate limit failed"
	if open {
		msg = "request let through: the rate limit failed"
	}
	if r.Context().Err() != nil { // the client is gone, which is no fault
		level = slog.LevelDebug
	}
	m.opts.Logger.Log(r.Context(), level, msg, "method", r.Method, "path", r.URL.Path, "error", err.Error())
}

// problemFor returns the response that an error stands for.
func problemFor(err error) (status int, members map[string]any) {
	status, members = problem.Of(err)
	if status == http.StatusInternalServerError && errors.Is(err, context.Canceled) {
		status = http.StatusServiceUnavailable // the request was, or a call that it shared
	}
	return status, members
}

// writeProblem answers with the RFC 9457 problem that the error stands for.
func writeProblem(w http.ResponseWriter, err error) {
	if denied, ok := err.(*DeniedError); ok {
		problem.WriteJSON(w, http.StatusTooManyRequests, denied.AppendProblem(make([]byte, 0, 256)), err)
		return
	}
	status, members := problemFor(err)
	problem.Write(w, status, members, err)
}
