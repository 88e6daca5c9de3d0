package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// exchange is one request and its response, in one allocation: the context with
// the properties, what the handler gets, and the gate that the response passes.
type exchange struct {
	srv  *Server
	root rootContext
	ctx  reqctx.Context
	gate gate
	req  Request
}

// rootContext is between the connection's context and the properties, so that the
// exchange is found from any context of the request.
type rootContext struct {
	context.Context
	x *exchange
}

type exchangeKey struct{}

func (c *rootContext) Value(key any) any {
	if _, ok := key.(exchangeKey); ok {
		return c.x
	}
	return c.Context.Value(key)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// begin prepares x and returns r with its context.
func (x *exchange) begin(s *Server, w http.ResponseWriter, r *http.Request) *http.Request {
	x.srv = s
	x.root = rootContext{r.Context(), x}
	x.ctx.Init(&x.root, s.reg)
	x.gate.ResponseWriter, x.gate.x = w, x
	r = r.WithContext(&x.ctx)
	x.ctx.SetRequest(r)
	return r
}

// request returns the Request for r, which may be a later copy of the one that
// begin returned, with path values for instance.
func (x *exchange) request(r *http.Request) *Request {
	x.ctx.SetRequest(r)
	x.req = Request{Request: r, ctx: &x.ctx}
	return &x.req
}

// respond makes the handler's error the response.
func (x *exchange) respond(err error) {
	switch {
	case err == nil:
	case errors.Is(err, http.ErrAbortHandler):
		panic(http.ErrAbortHandler)
	case x.gate.replaced:
		// The client has its error response; this one tells nothing new.
	case x.gate.hijacked:
		x.logFailure(err, "handler of a hijacked connection failed")
	case x.gate.wroteHeader:
		x.logFailure(err, "response cut off: the handler failed after it had begun to write")
		panic(http.ErrAbortHandler)
	default:
		x.gate.problem(x.problemFor(err))
	}
}

// settle is the end of a handler that returned: a response without a body has
// its properties committed too.
func (x *exchange) settle() {
	if !x.gate.wroteHeader {
		x.gate.open(http.StatusOK, true)
	}
}

// end is deferred: it answers a panic, closes the gate and finishes the request,
// if need be after ServeHTTP has returned, so that the client has the response
// and does not wait for clean-ups.
func (x *exchange) end() {
	v := recover()
	if v != nil && v != http.ErrAbortHandler {
		x.logPanic(v)
		if x.gate.wroteHeader {
			v = http.ErrAbortHandler
		} else {
			x.gate.fail(&Problem{Status: http.StatusInternalServerError})
			v = nil
		}
	}
	x.gate.over.Store(true)
	finish := func(context.Context) { _ = x.ctx.Finish() } // logs its errors
	if x.ctx.Idle() || x.srv.endings.Spawn("finish", finish) != nil {
		finish(&x.ctx)
	}
	if v != nil {
		panic(v)
	}
}

// problemFor maps a handler's error to the response, and logs it if it is the
// server's failure and not the client's.
func (x *exchange) problemFor(err error) *Problem {
	if x.ctx.Err() != nil {
		// The client is gone, or the server is going: nobody reads this.
		x.srv.log.DebugContext(&x.ctx, "request cancelled", x.about(err)...)
		return &Problem{Status: http.StatusServiceUnavailable}
	}
	p := asProblem(err)
	if p.Status >= 500 {
		x.logFailure(err, "request failed")
	}
	return p
}

func (x *exchange) logFailure(err error, msg string) {
	x.srv.log.ErrorContext(&x.ctx, msg, x.about(err)...)
}

func (x *exchange) about(err error) []any {
	r := x.ctx.Request()
	return []any{slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("error", err)}
}

// logPanic logs a panic once, with the stack of where it happened.
func (x *exchange) logPanic(v any) {
	r := x.ctx.Request()
	attrs := []any{slog.String("method", r.Method), slog.String("path", r.URL.Path)}
	if p, ok := v.(*lazy.PanicError); ok {
		attrs = append(attrs, slog.String("property", p.Name), slog.Any("panic", p.Value), slog.String("stack", string(p.Stack)))
	} else {
		attrs = append(attrs, slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	}
	x.srv.log.ErrorContext(&x.ctx, "panic", attrs...)
}
