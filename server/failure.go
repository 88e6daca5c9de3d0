package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/params"
)

// WriteError answers r with the problem of err, as if a [HandlerFunc] had returned err. It is for standard handlers
// and for the error handlers of other routers. The context of r must be derived from that of a request of a [Server],
// and w may be any writer around the server's. The handler must return afterwards. err must not be nil.
//
// If the response has begun, nothing is appended to it. The error is logged, and the connection is closed (an HTTP/2
// stream is reset) when the handler returns, so that the client does not mistake a part for the whole. Call
// WriteError once for a request.
//
// Outside of a Server, WriteError writes problem+json and logs nothing.
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

// respond answers r with the problem of err. g is the gate of the handler that has failed.
func (x *exchange) respond(g *gate, r *http.Request, err error) {
	if isNil(err) {
		return
	}
	p := asProblem(err)
	if pg := g.page(); pg != nil { // WriteProblem has called WriteError
		if p != pg.given { // p is not the argument of WriteProblem
			x.seen.fail(err)
			p = x.logged(p, err)
		}
		pg.p, pg.replaced = p, true
		return
	}
	x.seen.fail(err)
	switch {
	case g.replaced.Load() || x.gate.replaced.Load():
		// The client already has an error response.
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
		g.problem(r, x.logged(p, err))
	}
}

// abandoned reports whether a middleware has cancelled the handler and answers in its place, as
// [http.TimeoutHandler] does. In this case the handler's output is still in a buffer, or its writer accepts no more.
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

// logged returns p, the problem of a handler's error, for the response. It logs the error if it is a failure of the
// server.
func (x *exchange) logged(p *Problem, err error) *Problem {
	if p.status() < 500 {
		return p
	}
	x.logFailure(err, "request failed")
	if x.canceled() {
		return &Problem{Status: http.StatusServiceUnavailable}
	}
	return p
}

// canceled reports whether the client has left or the server is shutting down. Errors are expected then.
func (x *exchange) canceled() bool {
	return errors.Is(x.host.Err(), context.Canceled) && (x.body == nil || !x.body.timedOut.Load())
}

func (x *exchange) logFailure(err error, msg string) {
	level := slog.LevelError
	if x.canceled() || errors.Is(err, params.ErrInterrupted) { // clients must not be able to fill the log
		level = slog.LevelDebug
	}
	r := x.host.Request()
	x.srv.log.Log(&x.host.Context, level, msg, slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("error", fmt.Sprint(err))) // not as JSON, which omits the cause of a Problem
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

// requestBody is the body that the client sends. It records its end.
type requestBody struct {
	io.ReadCloser
	ended atomic.Bool // it was read to its end
	// timedOut is set after a read deadline. Over HTTP/1, net/http then cancels the request's context, as if the
	// client had left.
	timedOut atomic.Bool
}

// Read implements [io.Reader].
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.ended.Store(true)
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.timedOut.Store(true)
	}
	return n, err
}

// watchBody replaces the body of r with x.body. Nested servers share one requestBody.
func (x *exchange) watchBody(r *http.Request) {
	if outer := exchangeOf(x.Context); outer != nil {
		x.body = outer.body
		return
	}
	if r.Body != nil && r.Body != http.NoBody {
		x.body = &requestBody{ReadCloser: r.Body}
		r.Body = x.body
	}
}
