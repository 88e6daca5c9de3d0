package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Observer is called for each request. If it also implements [reqctx.Observer], it is called for each resolution of a
// property, too. A type that embeds an Observer must have these methods itself, so embed the concrete type. Methods
// must be safe for concurrent use and must not block. A panic is logged and has no other effect.
//
// If an Observer also has the method Decided(ctx context.Context, e ratelimit.Event), it is called for each op of the
// server's policies, as by [ratelimit.Observe]. Tasks and clean-ups may run ops after RequestEnd.
type Observer interface {
	// RequestEnd is called once for a request, after the handler has returned and before the properties are closed.
	// [reqctx.Context.Props] of reqctx.From(ctx) describes them, and [ratelimit.Decisions] the rate limits. Tasks of
	// the request may still be running.
	RequestEnd(ctx context.Context, info RequestInfo)
}

// RequestInfo describes a request that a handler has answered.
type RequestInfo struct {
	Server  *Server
	Request *http.Request // of the handler if it has returned; valid until RequestEnd returns
	Pattern string        // the pattern of the route; "" if there is none
	Status  int           // 0 if no response was sent or the connection was hijacked
	Written int64         // bytes of the body that were written, also for HEAD
	CutOff  bool          // the connection or stream ends before the end of the response
	Began   time.Time
	Took    time.Duration
	// Err is the error of the handler or of a Commit function, whatever response it became. A panic is a
	// [*lazy.PanicError], except for [http.ErrAbortHandler] and [lazy.ErrGoexit].
	Err error
}

// observation collects the data of a RequestInfo. Without observers it is nil, and its methods do nothing.
type observation struct {
	began   time.Time
	status  atomic.Int32
	written atomic.Int64
	err     atomic.Pointer[error]
	route   atomic.Pointer[string]       // the pattern of the route that was entered last
	handled atomic.Pointer[http.Request] // the request of the handler that returned last
}

func (o *observation) setStatus(status int) {
	if o != nil {
		o.status.CompareAndSwap(0, int32(status))
	}
}

func (o *observation) addWritten(n int64) {
	if o != nil {
		o.written.Add(n)
	}
}

// fail keeps the first error.
func (o *observation) fail(err error) {
	if o != nil && err != nil {
		first := err // allocates only if there is an error
		o.err.CompareAndSwap(nil, &first)
	}
}

// panicked is fail for the value of a panic. It ignores nil.
func (o *observation) panicked(v any) {
	if o == nil || v == nil {
		return
	}
	switch p, ok := v.(*lazy.PanicError); {
	case ok:
		o.fail(p)
	case v == http.ErrAbortHandler, v == lazy.ErrGoexit:
		o.fail(v.(error))
	default:
		o.fail(lazy.NewPanicError("handler", v))
	}
}

// observeEnd calls the observers of a request that ends.
func (x *exchange) observeEnd(cut bool) {
	o := x.seen
	if o == nil {
		return
	}
	r := cmp.Or(o.handled.Load(), x.made) // not the request of a handler that is still running
	info := RequestInfo{Server: x.srv, Request: r, Pattern: r.Pattern, Status: int(o.status.Load()), Written: o.written.Load(),
		CutOff: cut, Began: o.began, Took: time.Since(o.began)}
	if r.Method == http.MethodConnect {
		info.Pattern = "" // the mux uses the path as the pattern of a redirect
	}
	if route := o.route.Load(); info.Pattern == "" && route != nil {
		info.Pattern = *route
	}
	if err := o.err.Load(); err != nil {
		info.Err = *err
	}
	x.srv.observers.RequestEnd(&x.host.Context, info)
}

// observers calls all observers of a server. It stops their panics, which must not skip the end of a request or
// become the outcome of a property.
type observers struct {
	all       []Observer
	resolving []reqctx.Observer // the members of all that observe resolutions
	log       *slog.Logger
}

func newObservers(all []Observer, log *slog.Logger) *observers {
	o := &observers{all: all, log: log}
	for _, observer := range all {
		if r, ok := observer.(reqctx.Observer); ok {
			o.resolving = append(o.resolving, r)
		}
	}
	return o
}

// resolutions returns the observer of resolutions, or nil if no observer observes them.
func (o *observers) resolutions() reqctx.Observer {
	if len(o.resolving) == 0 {
		return nil
	}
	return o
}

type decisionObserver interface {
	Decided(ctx context.Context, e ratelimit.Event)
}

// around returns store, observed by the observers that have a method Decided.
func (o *observers) around(store ratelimit.Store) ratelimit.Store {
	for _, observer := range o.all {
		if d, ok := observer.(decisionObserver); ok {
			store = ratelimit.Observe(store, func(ctx context.Context, e ratelimit.Event) {
				o.try(observer, func() { d.Decided(ctx, e) })
			})
		}
	}
	return store
}

// try calls an observer. It logs an error if the observer panics or ends the goroutine.
func (o *observers) try(observer any, call func()) {
	returned := false
	defer func() {
		v := recover()
		if v == nil && !returned {
			v = lazy.ErrGoexit
		}
		if v != nil {
			o.log.Error("observer panicked", slog.String("observer", fmt.Sprintf("%T", observer)), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		}
	}()
	call()
	returned = true
}

func (o *observers) ResolveStart(ctx context.Context, name string) context.Context {
	for _, observer := range o.resolving {
		o.try(observer, func() { ctx = observer.ResolveStart(ctx, name) })
	}
	return ctx
}

func (o *observers) ResolveEnd(ctx context.Context, name string, took time.Duration, err error) {
	for _, observer := range slices.Backward(o.resolving) {
		o.try(observer, func() { observer.ResolveEnd(ctx, name, took, err) })
	}
}

func (o *observers) RequestEnd(ctx context.Context, info RequestInfo) {
	for _, observer := range o.all {
		o.try(observer, func() { observer.RequestEnd(ctx, info) })
	}
}

// AccessLog returns an observer that logs one line for each request when its handler has returned: the method, the
// route, the status, the bytes of the body, and the duration in milliseconds. It does not log the path, which may
// contain personal data. A nil log means [slog.Default].
//
//	srv, err := server.New(server.Options{Observers: []server.Observer{server.AccessLog(logger)}})
func AccessLog(log *slog.Logger) Observer { return &accessLog{log} }

type accessLog struct{ log *slog.Logger }

var knownMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY"}

// RequestEnd implements [Observer].
func (a *accessLog) RequestEnd(ctx context.Context, info RequestInfo) {
	method := info.Request.Method
	if !slices.Contains(knownMethods, method) {
		method = "other" // a client may send any text
	}
	cmp.Or(a.log, slog.Default()).LogAttrs(ctx, slog.LevelInfo, "request",
		slog.String("method", method), slog.String("route", info.Pattern), slog.Int("status", info.Status),
		slog.Int64("bytes", info.Written), slog.Float64("ms", float64(info.Took.Microseconds())/1000))
}
