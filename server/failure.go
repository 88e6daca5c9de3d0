package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/params"
)

// WriteError answers r with the problem that err stands for, as if a [HandlerFunc] had
// returned err. It is for standard handlers and for the error handlers of other routers. r must
// have the context of a request of a [Server], or one derived from it, and w may be any writer
// around the server's. The handler returns afterwards; err must not be nil.
//
// If the response has begun, nothing is appended to it. The error is logged, and the connection
// is closed (an HTTP/2 stream is reset) when the handler has returned, so that the client does
// not take the part for the whole. Call WriteError once for a request.
//
// Outside of a Server, WriteError writes the problem as problem+json and logs nothing.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	if x := exchangeOf(r.Context()); x != nil {
		x.respond(x.gateOn(w), r, err)
		return
	}
	if !isNil(err) {
		p := asProblem(err)
		p.addHeader(w.Header())
		p.write(w)
	}
}

// respond makes the error of the handler that writes to g the response to r.
func (x *exchange) respond(g *gate, r *http.Request, err error) {
	if isNil(err) {
		return
	}
	if pg := g.page(); pg != nil {
		pg.fail(err)
		return
	}
	x.seen.fail(err)
	switch {
	case g.replaced.Load() || x.gate.replaced.Load():
		// The client has its error response; this error adds nothing.
	case x.gate.closed.Load() || g.abandoned(r):
		x.logFailure(err, "handler failed after its request had been answered")
	case errors.Is(err, http.ErrAbortHandler):
		x.abort()
	case g.hijacked:
		x.logFailure(err, "handler of a hijacked connection failed")
	case g.wroteHeader.Load() || x.gate.wroteHeader.Load():
		x.logFailure(err, "response cut off: the handler failed after it had begun to write")
		x.abort()
	default:
		g.problem(r, x.problemFor(err))
	}
}

// abandoned reports whether a middleware that has canceled the handler, such as
// [http.TimeoutHandler], answers in its place: what the handler has written is still in a
// buffer, or its writer takes no more.
func (g *gate) abandoned(r *http.Request) bool {
	if g.nested == nil || r.Context().Err() == nil || g.x.host.Err() != nil {
		return false
	}
	if !g.x.gate.wroteHeader.Load() {
		return g.wroteHeader.Load()
	}
	_, err := g.ResponseWriter.Write(nil)
	return err != nil
}

// problemFor maps a handler's error to the response, and logs it if it is the
// server's failure and not the client's.
func (x *exchange) problemFor(err error) *Problem {
	p := asProblem(err)
	if p.status() < 500 || p == x.writing.Load() { // that one is logged already
		return p
	}
	x.logFailure(err, "request failed")
	if x.canceled() {
		return &Problem{Status: http.StatusServiceUnavailable}
	}
	return p
}

// canceled reports whether the client has gone away or the server is shutting down: errors are
// to be expected then.
func (x *exchange) canceled() bool {
	return errors.Is(x.host.Err(), context.Canceled) && (x.body == nil || !x.body.timedOut.Load())
}

func (x *exchange) logFailure(err error, msg string) {
	level := slog.LevelError
	if x.canceled() || errors.Is(err, params.ErrInterrupted) { // clients must not fill the log
		level = slog.LevelDebug
	}
	r := x.host.Request()
	x.srv.log.Log(&x.host.Context, level, msg, slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("error", fmt.Sprint(err))) // as text: the JSON of a Problem leaves out its cause
}

func (x *exchange) logPanic(v any) {
	r := x.host.Request()
	x.srv.logPanic(&x.host.Context, v, slog.String("method", r.Method), slog.String("path", r.URL.Path))
}

// logPanic logs a panic with the stack of where it happened.
func (s *Server) logPanic(ctx context.Context, v any, attrs ...any) {
	if p, ok := v.(*lazy.PanicError); ok {
		attrs = append(attrs, slog.String("property", p.Name), slog.Any("panic", p.Value), slog.String("stack", string(p.Stack)))
	} else {
		attrs = append(attrs, slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	}
	s.log.ErrorContext(ctx, "panic", attrs...)
}
