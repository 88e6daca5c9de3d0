package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/params"
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

	returned bool // the handler has, neither panicked nor ended its goroutine
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
	params.Share(r, w) // a router of another package may work on a copy
	x.ctx.SetRequest(r)
	return r
}

// nest answers a request that one of the server's handlers has passed back to the
// server. The properties are the same, and so is the gate that commits them; one
// more gate, on w, has the errors go the way of the response, whatever was put
// around it on the way here.
func (x *exchange) nest(w http.ResponseWriter, r *http.Request, h http.Handler, routed bool) {
	outer := x.ctx.Request()
	h.ServeHTTP(&gate{ResponseWriter: w, x: x, nested: true, routed: routed}, r)
	x.ctx.SetRequest(outer)
}

// request returns the Request for r, which may be a later copy of the one that
// begin returned.
func (x *exchange) request(r *http.Request) *Request {
	x.ctx.SetRequest(r)
	req := &x.req
	if req.Request != nil { // an outer handler's
		req = new(Request)
	}
	*req = Request{Request: r, ctx: &x.ctx}
	return req
}

// respond makes the handler's error the response on g.
func (x *exchange) respond(g *gate, err error) {
	switch {
	case err == nil:
	case g.replaced.Load() || x.gate.replaced.Load():
		// The client has its error response; this one tells nothing new.
	case errors.Is(err, http.ErrAbortHandler):
		panic(http.ErrAbortHandler)
	case g.hijacked:
		x.logFailure(err, "handler of a hijacked connection failed")
	case g.wroteHeader:
		x.logFailure(err, "response cut off: the handler failed after it had begun to write")
		panic(http.ErrAbortHandler)
	default:
		g.problem(x.problemFor(err))
	}
}

// settle is the end of a handler that returned: a response without a body has
// its properties committed too.
func (x *exchange) settle() {
	if !x.gate.wroteHeader {
		x.gate.open(http.StatusOK, true)
	}
	x.returned = true
}

// end is deferred: it answers a panic, closes the gate and finishes the request,
// if need be after ServeHTTP has returned, so that the client has the response
// and does not wait for clean-ups.
func (x *exchange) end() {
	v := recover()
	if v == nil && !x.returned {
		v = lazy.ErrGoexit
	}
	if v != nil {
		v = x.answerPanic(v)
	}
	x.gate.over.Store(true)
	x.removeForm()
	if x.ctx.Idle() || x.finishLater() != nil {
		_ = x.ctx.Finish() // logs its errors
	}
	if v != nil {
		panic(v)
	}
}

// removeForm removes the files of a ParseMultipartForm, which net/http does only for
// the request that it made itself.
func (x *exchange) removeForm() {
	if f := x.ctx.Request().MultipartForm; f != nil {
		if err := f.RemoveAll(); err != nil {
			x.logFailure(err, "files of a multipart form are left")
		}
	}
}

// answerPanic logs a panic and makes it the response. It returns what to go on
// panicking with, so that net/http cuts off a response that has already begun.
func (x *exchange) answerPanic(v any) any {
	if v != http.ErrAbortHandler {
		x.logPanic(v)
	}
	switch {
	case x.gate.replaced.Load(): // by a problem, and that is whole
	case x.gate.wroteHeader, v == http.ErrAbortHandler:
		return http.ErrAbortHandler
	default:
		if v == lazy.ErrGoexit && x.ctx.Request().ProtoMajor == 1 {
			x.gate.Header().Set("Connection", "close") // net/http is going to
		}
		x.gate.fail(&Problem{Status: http.StatusInternalServerError}, nil)
	}
	if v == lazy.ErrGoexit { // net/http drops what it has not sent, and resets an HTTP/2 stream after it
		_ = http.NewResponseController(x.gate.ResponseWriter).Flush()
	}
	return nil
}

func (x *exchange) finishLater() error {
	return x.srv.endings.Spawn("finish", func(context.Context) { _ = x.ctx.Finish() })
}

// problemFor maps a handler's error to the response, and logs it if it is the
// server's failure and not the client's.
func (x *exchange) problemFor(err error) *Problem {
	p := asProblem(err)
	if p.status() < 500 {
		return p
	}
	x.logFailure(err, "request failed")
	if x.cancelled() {
		return &Problem{Status: http.StatusServiceUnavailable}
	}
	return p
}

// cancelled says whether the client is gone, or the server is going: what fails
// then is nobody's fault.
func (x *exchange) cancelled() bool { return errors.Is(x.ctx.Err(), context.Canceled) }

func (x *exchange) logFailure(err error, msg string) {
	level := slog.LevelError
	if x.cancelled() {
		level = slog.LevelDebug
	}
	x.srv.log.Log(&x.ctx, level, msg, x.about(err)...)
}

// about gives the error as text: the JSON of a Problem leaves out its cause.
func (x *exchange) about(err error) []any {
	r := x.ctx.Request()
	return []any{slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("error", err.Error())}
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
