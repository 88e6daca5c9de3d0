package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/session"
)

// OptionError is the error of [New] for a value of [Options] that it refuses. It has the fields
// Package, Field and Reason.
type OptionError = option.Error

// Options configure a [Server]. The zero value serves with sessions and counters in memory, no
// rate limit, and the timeouts below. A negative timeout means none.
//
// The timeouts hold on the server's own listeners (ListenAndServe, Serve and their like). In
// another [http.Server], its timeouts do.
type Options struct {
	// Session configures req.Session().
	Session session.Options
	// SessionStore keeps the sessions. Nil means memory.
	SessionStore session.Store
	// RateLimits are the policies that requests have. The server copies them: a later change has no
	// effect.
	RateLimits []*ratelimit.Policy
	// RateLimitStore keeps the counters. Nil means memory.
	RateLimitStore ratelimit.Store
	// Params configures req.Params().
	Params params.Options

	// CrossOrigin decides which cross-origin browser requests of unsafe methods (POST, PUT,
	// DELETE …) are let through; the others are answered 403. Nil means only those from the
	// same origin, and clients that are no browsers. Origin is compared with Host, so a proxy in
	// front has to pass the client's Host on. Let other origins in with
	// [http.CrossOriginProtection.AddTrustedOrigin]; a deny handler is not called.
	CrossOrigin *http.CrossOriginProtection
	// InsecureAllowCrossOrigin lets all of them through: any web page can then act with the
	// session of a user who visits it.
	InsecureAllowCrossOrigin bool

	// WriteProblem writes the error responses of the server: errors of handlers, unknown routes (404,
	// 405), cross-origin refusals, failed commits, panics, denials by a [ratelimit.Middleware] within
	// the server, and [WriteError]. Nil means problem+json.
	//
	// p is a copy, as [ProblemOf] returns it. Its Detail may contain text of the client, and its Err is
	// not for clients. w has the header of the response, with the fields of p.Header and with
	// Retry-After. A Write without WriteHeader sends p.Status. WriteProblem may use any status, for
	// example for a redirect to a login page, which gets no Retry-After. If it writes nothing, p is sent
	// as problem+json, with the changes that WriteProblem has made to it; its Header replaces the fields
	// of w then. If it panics, the panic is logged, and the problem is sent without changes. WriteError
	// called by WriteProblem discards what was written, and sends problem+json.
	//
	// WriteProblem runs before the commit, and may write to the session, unless the handler has tried to
	// hijack the connection. If that commit fails, it is called again with the problem of the failure,
	// and cannot write to the session then. Of the first response, cookies and fields that describe the
	// body are not sent. After a panic of the handler nothing is committed. WriteProblem must be safe for
	// concurrent use. It is not called for a response that a middleware or a standard handler writes
	// itself, such as that of [http.TimeoutHandler].
	WriteProblem func(w http.ResponseWriter, r *http.Request, p *Problem)

	// Logger gets failed requests (5xx), panics and failed clean-ups. Nil means
	// [slog.Default].
	Logger *slog.Logger
	// Observers are called for every request, and those that observe resolutions for every
	// resolution of a property, in this order (at ends of resolutions in reverse). None may be nil
	// or given twice.
	Observers []Observer
	// Callers records for observers which line of code first read a property, see
	// [reqctx.Info]. It costs about a microsecond for each resolution.
	Callers bool
	// ServerTiming adds a Server-Timing field with the duration of each property that was
	// resolved before the header went out. It shows clients the inside of the server.
	ServerTiming bool

	// ReadHeaderTimeout bounds the reading of a request's header. Zero means 10 s, or
	// ReadTimeout if that is shorter.
	ReadHeaderTimeout time.Duration
	// ReadTimeout bounds the reading of a whole request. Zero means 1 min, or
	// Params.ReadTimeout if that is longer. A route whose uploads take longer has a
	// ReadTimeout of its own in Params.Routes, which replaces this one from the first read of
	// a body through req.Params().
	ReadTimeout time.Duration
	// WriteTimeout bounds how long a response makes no progress because the client doesn't
	// read: the deadline moves with every 64 KiB that are written and with every Flush. So a
	// client that keeps reading gets a download of any length, and events can be streamed for
	// ever. On Linux about 256 KiB in half of it suffice; elsewhere, and on listeners of other
	// servers, the kernel may buffer megabytes and report no progress until a third of them is
	// read. It doesn't bound the handler's own time. A deadline that the handler sets with
	// [http.ResponseController.SetWriteDeadline] stays as it is. Zero means 1 min.
	WriteTimeout time.Duration
	// IdleTimeout bounds the wait for the next request on a connection. Zero means 2 min.
	IdleTimeout time.Duration
	// ShutdownTimeout bounds how long [Server.RunUntil] waits for requests in progress. Zero
	// means 10 s.
	ShutdownTimeout time.Duration
	// MaxHeaderBytes bounds a request's header. Zero means 64 KiB.
	MaxHeaderBytes int
}

const (
	defaultReadHeaderTimeout = 10 * time.Second
	defaultReadTimeout       = time.Minute
	defaultWriteTimeout      = time.Minute
	defaultIdleTimeout       = 2 * time.Minute
	defaultShutdownTimeout   = 10 * time.Second
	defaultMaxHeaderBytes    = 64 << 10
	defaultParamsReadTimeout = 30 * time.Second
)

// withDefaults resolves the zero fields. A negative timeout stays as it is: to net/http, which
// takes another timeout for one that is 0, it means none.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CrossOrigin == nil {
		o.CrossOrigin = http.NewCrossOriginProtection()
	}
	o.ReadTimeout = cmp.Or(o.ReadTimeout, max(defaultReadTimeout, o.Params.ReadTimeout))
	if o.ReadTimeout > 0 {
		o.ReadHeaderTimeout = cmp.Or(o.ReadHeaderTimeout, min(defaultReadHeaderTimeout, o.ReadTimeout))
		o.Params.ReadTimeout = cmp.Or(o.Params.ReadTimeout, min(defaultParamsReadTimeout, o.ReadTimeout))
	}
	o.ReadHeaderTimeout = cmp.Or(o.ReadHeaderTimeout, defaultReadHeaderTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, defaultWriteTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, defaultIdleTimeout)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, defaultShutdownTimeout)
	o.MaxHeaderBytes = cmp.Or(o.MaxHeaderBytes, defaultMaxHeaderBytes)
	return o
}

// check returns an error if a field is out of range or contradicts another.
func (o Options) check() error {
	for field, d := range map[string]time.Duration{
		"Options.ReadHeaderTimeout": o.ReadHeaderTimeout, "Options.ReadTimeout": o.ReadTimeout,
		"Options.WriteTimeout": o.WriteTimeout, "Options.IdleTimeout": o.IdleTimeout,
		"Options.ShutdownTimeout": o.ShutdownTimeout,
	} {
		if err := option.Duration("server", field, max(d, 0), 0); err != nil {
			return err
		}
	}
	if o.ReadTimeout > 0 {
		if d := o.ReadHeaderTimeout; d > o.ReadTimeout {
			return option.Errorf("server", "Options.ReadHeaderTimeout", "is %v, longer than ReadTimeout, %v", d, o.ReadTimeout)
		}
		if d := o.Params.ReadTimeout; d > o.ReadTimeout {
			return option.Errorf("server", "Options.Params.ReadTimeout", "is %v, longer than ReadTimeout, %v", d, o.ReadTimeout)
		}
	}
	for name, store := range map[string]any{"SessionStore": o.SessionStore, "RateLimitStore": o.RateLimitStore} {
		if store != nil && option.IsNil(store) {
			return option.Errorf("server", "Options."+name, "is a nil %T", store)
		}
	}
	for i, observer := range o.Observers {
		field := fmt.Sprintf("Options.Observers[%d]", i)
		if option.IsNil(observer) {
			return option.Errorf("server", field, "is nil")
		}
		if reflect.ValueOf(observer).Comparable() && slices.Contains(o.Observers[:i], observer) {
			return option.Errorf("server", field, "is given twice, and would count each request twice")
		}
	}
	return option.Count("server", "Options.MaxHeaderBytes", o.MaxHeaderBytes, 0)
}
