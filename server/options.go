package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/session"
)

// OptionError is the error of [New] for a field of [Options]. It has the fields Package, Field and Reason.
type OptionError = option.Error

// Options configure a [Server]. The zero value keeps sessions and counters in memory, has no rate limit, and has the
// default timeouts below. A negative timeout means none. The timeouts apply to the server's own listeners
// (ListenAndServe, Serve and similar methods). Within another [http.Server], the timeouts of that server apply.
type Options struct {
	// Session configures req.Session().
	Session session.Options
	// SessionStore keeps the sessions. The zero value keeps them in memory.
	SessionStore session.Store
	// RateLimits are the policies of the server. The server copies their fields: later changes have no effect.
	RateLimits []*ratelimit.Policy
	// RateLimitStore keeps the counters. The zero value keeps them in memory.
	RateLimitStore ratelimit.Store
	// Params configures req.Params().
	Params params.Options

	// CrossOrigin decides which cross-origin browser requests with unsafe methods (POST, PUT, DELETE …) are allowed.
	// Others are answered with 403. The zero value allows only requests from the same origin and from clients that
	// are not browsers. Origin is compared with Host, so a proxy in front must preserve the client's Host. To allow
	// other origins, use [http.CrossOriginProtection.AddTrustedOrigin]. A deny handler is not called.
	CrossOrigin *http.CrossOriginProtection
	// InsecureAllowCrossOrigin allows all of them. Any web page can then act with the session of a visitor.
	InsecureAllowCrossOrigin bool

	// WriteProblem writes the error responses of the server: errors of handlers, unknown routes (404, 405),
	// cross-origin refusals, failed commits, panics, denials by a [ratelimit.Middleware] inside the server, and
	// [WriteError]. The zero value writes problem+json. WriteProblem must be safe for concurrent use.
	//
	// p is a copy, as [ProblemOf] returns it. Its Detail may contain text of the client. Its Err must not be shown to
	// clients. w already has the header of the response, with p.Header and Retry-After. A Write without WriteHeader
	// sends p.Status. WriteProblem may use another status, for example for a redirect to a login page. If it writes
	// nothing, p is sent as problem+json with its changes, but fields that it removes from p.Header are sent, too. If it
	// panics, the panic is logged and the unchanged problem is sent. If it calls WriteError, its output is discarded
	// and problem+json is sent.
	//
	// WriteProblem runs before the commit, so it may write to the session, unless the handler has tried to hijack the
	// connection. If that commit fails, WriteProblem is called again with the problem of the failure and can no
	// longer write to the session. Cookies and fields that describe the first body are dropped then. After a panic of
	// the handler, nothing is committed. WriteProblem is not called for responses that a middleware or a standard
	// handler writes itself, such as that of [http.TimeoutHandler].
	WriteProblem func(w http.ResponseWriter, r *http.Request, p *Problem)

	// Logger gets failed requests (5xx), panics and failed clean-ups. The zero value means [slog.Default].
	Logger *slog.Logger
	// Observers are called for every request in this order. Observers that implement [reqctx.Observer] are also
	// called for every resolution of a property, and in reverse order when it ends. None may be nil.
	Observers []Observer
	// Callers records for observers which line of code first read a property, see [reqctx.Info]. It costs about a
	// microsecond for each resolution.
	Callers bool
	// ServerTiming adds a Server-Timing field with the duration of each property that was resolved before the header
	// was sent. It shows internals of the server to clients.
	ServerTiming bool

	// ReadHeaderTimeout limits the time to read a request's header. Zero means 10 s, or ReadTimeout if that is
	// shorter.
	ReadHeaderTimeout time.Duration
	// ReadTimeout limits the time to read a whole request. Zero means 1 min, or Params.ReadTimeout if that is longer.
	// For routes with slow uploads, a ReadTimeout in Params.Routes replaces it from the first read of a body by
	// req.Params().
	ReadTimeout time.Duration
	// WriteTimeout limits how long a response may make no progress because the client does not read. The deadline
	// moves with every 64 KiB that are written and with every Flush. So a client that keeps reading can download for
	// any length of time, and events can be streamed forever. On Linux, the client must read about 256 KiB in half of
	// the timeout. On other systems and on listeners of other servers, the kernel may buffer megabytes, and reports
	// progress only once a third of them is read. WriteTimeout does not limit the handler's own time. It ends once
	// the handler calls [http.ResponseController.SetWriteDeadline]. Zero means 1 min.
	WriteTimeout time.Duration
	// IdleTimeout limits the wait for the next request on a connection. Zero means 2 min.
	IdleTimeout time.Duration
	// ShutdownTimeout limits how long [Server.RunUntil] waits for requests in progress. Zero means 10 s.
	ShutdownTimeout time.Duration
	// MaxHeaderBytes limits the size of a request's header. Zero means 64 KiB.
	MaxHeaderBytes int
}

// withDefaults sets the zero fields. Negative timeouts stay negative, because net/http replaces some zero timeouts
// with others.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CrossOrigin == nil {
		o.CrossOrigin = http.NewCrossOriginProtection()
	}
	o.ReadTimeout = cmp.Or(o.ReadTimeout, max(time.Minute, o.Params.ReadTimeout))
	if o.ReadTimeout > 0 {
		o.ReadHeaderTimeout = cmp.Or(o.ReadHeaderTimeout, min(10*time.Second, o.ReadTimeout))
		o.Params.ReadTimeout = cmp.Or(o.Params.ReadTimeout, min(30*time.Second, o.ReadTimeout))
	}
	o.ReadHeaderTimeout = cmp.Or(o.ReadHeaderTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, time.Minute)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 2*time.Minute)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, 10*time.Second)
	o.MaxHeaderBytes = cmp.Or(o.MaxHeaderBytes, 64<<10)
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
		if option.IsNil(observer) {
			return option.Errorf("server", fmt.Sprintf("Options.Observers[%d]", i), "is nil")
		}
	}
	return option.Count("server", "Options.MaxHeaderBytes", o.MaxHeaderBytes, 0)
}
