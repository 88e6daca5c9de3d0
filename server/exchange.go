package server

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/internal/graceful"
	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server/internal/requestwatch"
)

// exchange is one request and its response, in one allocation: the context with the
// properties, the handler's Request, and the gate that the response passes.
//
// It is at most 512 bytes large: beyond, allocations cost markedly more.
//
// It is a context itself, between the connection's and the properties', so that it is found
// from any context of the request.
type exchange struct {
	context.Context
	srv  *Server
	host reqctx.Host
	gate gate
	req  Request

	body     *requestBody  // nil if the request has none
	made     *http.Request // that serve gave to the handlers; middleware may pass on a copy
	refused  error         // the response in place of the handlers'
	accepted bool          // by a listener of the server's own
	chained  bool          // the middleware has begun
	returned bool          // the handler has, without a panic and without ending its goroutine
	aborted  atomic.Bool
	seen     *observation            // what the server's observers get; nil if there are none
	writing  atomic.Pointer[Problem] // given to Options.WriteProblem; it stays after a panic of it
}

type exchangeKey struct{}

// Value returns the exchange for exchangeKey, and WriteError for problem.WriterKey.
func (x *exchange) Value(key any) any {
	switch key.(type) {
	case exchangeKey:
		return x
	case problem.WriterKey:
		return problem.Writer(WriteError)
	}
	return x.Context.Value(key)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// begin prepares x and returns r with its context.
func (x *exchange) begin(s *Server, w http.ResponseWriter, r *http.Request) *http.Request {
	x.Context, x.srv = r.Context(), s
	x.host.Init(x, s.reg)
	requestwatch.Notify(x.Context, &x.host)
	x.gate.ResponseWriter, x.gate.x = w, x
	if len(s.opts.Observers) > 0 {
		x.seen = &observation{began: time.Now()}
	}
	if x.accepted {
		x.gate.deadline.start(w, r, s.opts.WriteTimeout)
	}
	r = r.WithContext(&x.host.Context)
	x.made = r
	x.watchBody(r)
	params.Share(r, w) // a router of another package may work on a copy
	x.host.SetRequest(r)
	if x.refused = x.host.PresetErr(); x.refused == nil {
		x.refused = s.refuse(r)
	}
	x.gate.routed = true
	return r
}

// gateOn returns w if it is a gate, else a gate on w: it commits nothing, and has errors go the
// way of the response, through everything that is around the exchange's own gate.
func (x *exchange) gateOn(w http.ResponseWriter) *gate {
	if g, ok := w.(*gate); ok && g.x == x {
		return g
	}
	return &gate{ResponseWriter: w, x: x, nested: &nesting{w.Header()["Content-Encoding"]}, routed: true}
}

// request returns the Request for r, which may be a later copy of the one that begin returned.
func (x *exchange) request(r *http.Request) *Request {
	x.host.SetRequest(r)
	req := &x.req
	if req.Request != nil { // an outer handler's
		req = new(Request)
	}
	*req = Request{Request: r, ctx: &x.host.Context, base: r.Context()}
	return req
}

// complete is called when the handler has returned. A response without a body has its
// properties committed too.
func (x *exchange) complete() {
	if !x.gate.wroteHeader.Load() {
		x.gate.open(http.StatusOK, true)
	}
	x.gate.deadline.extend(x.gate.ResponseWriter) // for what net/http has still to send
	if x.body != nil && !x.body.ended.Load() && graceful.ClosesAtOnce(x.made) {
		graceful.DelayClose(x.gate.ResponseWriter)
	}
	x.returned = true
}

// end is deferred: it answers a panic and ends the request.
func (x *exchange) end() {
	v := recover()
	switch {
	case v != nil:
	case !x.returned:
		v = lazy.ErrGoexit
	case x.aborted.Load():
		v = http.ErrAbortHandler
	}
	x.seen.panicked(v)
	cut := v != nil
	defer func() { x.close(cut) }() // also when WriteProblem ends the goroutine
	if v != nil {
		cut = x.answerPanic(v)
	}
}

// close closes the gate, calls the observers and finishes the request. If the response has to be cut off,
// it panics for net/http.
func (x *exchange) close(cut bool) {
	x.gate.closed.Store(true)
	defer func() { // also when an observer ends the goroutine
		x.removeForm(x.made)
		x.finish()
	}()
	x.observeEnd(cut)
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// finish runs the request's clean-ups. On the server's own listeners they run after ServeHTTP
// has returned, so that the client has the end of the response and does not wait for them, and
// the server's Shutdown waits for them. Another http.Server's Shutdown waits only for ServeHTTP.
func (x *exchange) finish() {
	if !x.accepted || x.host.Idle() || x.finishLater() != nil {
		_ = x.host.Finish() // logs its errors
	}
}

// finishLater cancels the tasks first: net/http cancels the request's context when ServeHTTP
// returns, and a task could not tell that from a client that is gone.
func (x *exchange) finishLater() error {
	x.host.CancelTasks()
	return x.srv.endings.Spawn("finish", func(context.Context) error { _ = x.host.Finish(); return nil })
}

// endHandler is deferred where the handler of r runs. After [http.TimeoutHandler] has answered, a
// handler goes on with a copy of the request on a goroutine of its own.
func (x *exchange) endHandler(r *http.Request) {
	if r != x.made {
		x.removeForm(r)
	}
	x.seen.setHandled(r)
}

// removeForm removes the files of a ParseMultipartForm, which net/http does only for the
// request that it made itself.
func (x *exchange) removeForm(r *http.Request) {
	if f := r.MultipartForm; f != nil {
		if err := f.RemoveAll(); err != nil {
			x.logFailure(err, "files of a multipart form could not be removed")
		}
	}
}

// answerPanic logs a panic and makes it the response. It reports whether the response has to be cut off,
// because it has begun.
func (x *exchange) answerPanic(v any) (cut bool) {
	if v != http.ErrAbortHandler {
		x.logPanic(v)
	}
	switch {
	case x.aborted.Load():
		return true
	case x.gate.replaced.Load(): // by a problem, which is complete
	case x.gate.wroteHeader.Load(), v == http.ErrAbortHandler:
		return true
	default:
		if v == lazy.ErrGoexit && x.host.Request().ProtoMajor == 1 {
			x.gate.Header().Set("Connection", "close") // net/http is going to close it
		}
		x.gate.fail(&Problem{Status: http.StatusInternalServerError}, nil)
	}
	if v == lazy.ErrGoexit { // net/http drops what it has not sent, and resets an HTTP/2 stream after it
		_ = http.NewResponseController(x.gate.ResponseWriter).Flush()
	}
	return false
}

// abort has the connection cut off, or the HTTP/2 stream reset, when the handler has returned to
// the goroutine of net/http. A panic could be on another one, a middleware's, and crash the
// process.
func (x *exchange) abort() {
	x.aborted.Store(true)
	x.gate.replaced.Store(true)
}
