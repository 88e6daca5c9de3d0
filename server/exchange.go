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

// exchange is one request and its response in one allocation: the context with the properties, the handler's Request,
// and the gate of the response. Its size is limited to 512 bytes, because larger allocations are slower.
//
// An exchange is also a context, the parent of the context with the properties. So every context of the request
// leads to it.
type exchange struct {
	context.Context
	srv  *Server
	host reqctx.Host
	gate gate
	req  Request

	body     *requestBody  // nil if the request has none
	made     *http.Request // the request that serve gave to the handlers; middleware may pass on a copy
	refused  error         // if not nil, the response instead of the handlers'
	accepted bool          // by one of the server's own listeners
	returned bool          // the handler has returned normally
	aborted  atomic.Bool
	seen     *observation         // nil if the server has no observers
	page     atomic.Pointer[page] // of the latest call of Options.WriteProblem
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

// begin initializes x and returns a copy of r whose context has the properties.
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
	params.Share(r, w) // for routers that work on a copy
	x.host.SetRequest(r)
	if x.refused = x.host.PresetErr(); x.refused == nil {
		x.refused = s.refuse(r)
	}
	x.gate.routed = true
	return r
}

// gateOn returns w itself if it is a gate of x. Otherwise, it returns a new gate around w, which does not commit and
// sends error responses through w.
func (x *exchange) gateOn(w http.ResponseWriter) *gate {
	if g, ok := w.(*gate); ok && g.x == x {
		return g
	}
	return &gate{ResponseWriter: w, x: x, nested: &nesting{w.Header()["Content-Encoding"]}, routed: true}
}

// request returns the Request of r, which may be a copy of the request that begin returned.
func (x *exchange) request(r *http.Request) *Request {
	x.host.SetRequest(r)
	req := &x.req
	if req.Request != nil { // used by an outer handler
		req = new(Request)
	}
	*req = Request{Request: r, ctx: &x.host.Context, base: r.Context()}
	return req
}

// complete is called when the handler has returned. If the handler has sent nothing, complete commits, and net/http
// sends a response without a body.
func (x *exchange) complete() {
	if !x.gate.wroteHeader.Load() {
		x.gate.open(http.StatusOK, true)
	}
	x.gate.deadline.extend(x.gate.ResponseWriter) // for data that net/http has buffered
	if x.body != nil && !x.body.ended.Load() && graceful.ClosesAtOnce(x.made) {
		graceful.DelayClose(x.gate.ResponseWriter)
	}
	x.returned = true
}

// end is deferred. It answers a panic and ends the request.
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
	defer func() { x.close(cut) }() // deferred in case WriteProblem ends the goroutine
	if v != nil {
		cut = x.answerPanic(v)
	}
}

// close closes the gate, calls the observers and finishes the request. If the response has to be cut off, close
// panics as net/http requires.
func (x *exchange) close(cut bool) {
	x.gate.closed.Store(true)
	defer func() { // in case an observer ends the goroutine
		x.removeForm(x.made)
		x.finish()
	}()
	x.observeEnd(cut)
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// finish runs the request's clean-ups. On the server's own listeners they run after ServeHTTP has returned, so that
// the client does not wait for them; Shutdown does. Within another http.Server they run before, because its Shutdown
// only waits for ServeHTTP.
func (x *exchange) finish() {
	if !x.accepted || x.host.Idle() || x.finishLater() != nil {
		_ = x.host.Finish() // logs its errors
	}
}

// finishLater finishes the request on another goroutine. It cancels the tasks first: net/http cancels the request's
// context when ServeHTTP returns, and a task could not distinguish that from a client that has left.
func (x *exchange) finishLater() error {
	x.host.CancelTasks()
	return x.srv.endings.Spawn("finish", func(context.Context) error { _ = x.host.Finish(); return nil })
}

// endHandler is deferred where the handler of r runs. After [http.TimeoutHandler] has answered, the handler continues
// on its own goroutine with a copy of the request.
func (x *exchange) endHandler(r *http.Request) {
	if r != x.made {
		x.removeForm(r)
	}
	if x.seen != nil {
		x.seen.handled.Store(r)
	}
}

// removeForm removes the files of ParseMultipartForm. net/http only does this for its own request, and not for
// copies.
func (x *exchange) removeForm(r *http.Request) {
	if f := r.MultipartForm; f != nil {
		if err := f.RemoveAll(); err != nil {
			x.logFailure(err, "files of a multipart form could not be removed")
		}
	}
}

// answerPanic logs a panic and answers it. It reports whether the response has to be cut off because it has begun, or
// because the goroutine ends: net/http then closes the connection or resets the HTTP/2 stream.
func (x *exchange) answerPanic(v any) (cut bool) {
	if v != http.ErrAbortHandler {
		x.logPanic(v)
	}
	switch {
	case x.aborted.Load(), v == lazy.ErrGoexit:
		return true
	case x.gate.replaced.Load(): // the problem is complete
		return false
	case x.gate.wroteHeader.Load(), v == http.ErrAbortHandler:
		return true
	}
	x.gate.fail(&Problem{Status: http.StatusInternalServerError}, nil)
	return false
}

// abort cuts off the connection, or resets the HTTP/2 stream, when the handler has returned to net/http's goroutine.
// A panic could be on another goroutine and crash the process.
func (x *exchange) abort() {
	x.aborted.Store(true)
	x.gate.replaced.Store(true)
}
