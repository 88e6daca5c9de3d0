package sdktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

var quiet = slog.New(slog.DiscardHandler)

var (
	account = reqctx.NewKey[string]("account")
	plan    = reqctx.NewKey[string]("plan")
	flags   = reqctx.NewKey[string]("flags")
)

// provideChain provides the properties plan, which reads account, and flags, which begins its own span.
func provideChain(srv *server.Server) {
	reqctx.Provide(srv.Registry(), account, reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { return "a", nil }})
	reqctx.Provide(srv.Registry(), plan, reqctx.Prop[string]{Timeout: time.Minute, Resolve: func(ctx context.Context) (string, error) {
		return account.Get(ctx)
	}})
	reqctx.Provide(srv.Registry(), flags, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		span := trace.SpanFromContext(ctx)
		_, query := span.TracerProvider().Tracer("database").Start(ctx, "query")
		query.End()
		return "f", nil
	}})
}

func TestSpansAreBelowTheirReaders(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv := r.newServer(t, server.Options{})
	provideChain(srv)
	srv.HandleFunc("GET /users/{id}", func(_ http.ResponseWriter, req *server.Request) error {
		if _, err := plan.Get(req.Context()); err != nil {
			return err
		}
		if _, err := account.Get(req.Context()); err != nil { // a hit
			return err
		}
		ctx, span := r.tracers.Tracer("app").Start(req.Context(), "render")
		defer span.End()
		_, err := flags.Get(ctx)
		return err
	})
	require.Equal(t, 200, get(srv, "/users/7"))
	r.requireParent(t, "GET /users/{id}", "resolve plan")
	r.requireParent(t, "resolve plan", "resolve account")
	r.requireParent(t, "GET /users/{id}", "render")
	r.requireParent(t, "render", "resolve flags")
	r.requireParent(t, "resolve flags", "query")
	require.Len(t, r.spans.Ended(), 6)
	s := r.span(t, "resolve plan")
	require.Equal(t, trace.SpanKindInternal, s.SpanKind())
	require.Equal(t, codes.Unset, s.Status().Code)
	require.Equal(t, "property", string(s.Attributes()[0].Key))
	require.Equal(t, "plan", s.Attributes()[0].Value.AsString())
	require.Len(t, s.Attributes(), 1)
}

// The parent of a prefetched property's span is the request's span, even if the handler does not read the property.
func TestPrefetchedProperties(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv := r.newServer(t, server.Options{})
	inner, early := reqctx.NewKey[int]("early-inner"), reqctx.NewKey[int]("early")
	begun := make(chan struct{})
	reqctx.Provide(srv.Registry(), inner, reqctx.Prop[int]{Resolve: func(context.Context) (int, error) {
		close(begun)
		return 1, nil
	}})
	reqctx.Provide(srv.Registry(), early, reqctx.Prop[int]{Resolve: inner.Get})
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { <-begun; return nil }, server.Prefetch(early))
	ts := httptest.NewServer(srv)
	res, err := http.Get(ts.URL)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	http.DefaultClient.CloseIdleConnections()
	ts.Close()
	require.NoError(t, srv.Shutdown(t.Context()))
	r.requireParent(t, "GET /", "resolve early")
	r.requireParent(t, "resolve early", "resolve early-inner")
}

// If a resolution ends because its request has ended, its span has not failed, whatever error it returned.
func TestPrefetchesThatAreCancelledHaveNotFailed(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv := r.newServer(t, server.Options{})
	never := reqctx.NewKey[int]("cancelled-never")
	reqctx.Provide(srv.Registry(), never, reqctx.Prop[int]{})
	begun := make(chan struct{})
	provide := func(name string, err func(ctx context.Context) error) reqctx.Key[int] {
		k := reqctx.NewKey[int]("cancelled-" + name)
		reqctx.Provide(srv.Registry(), k, reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return 0, fmt.Errorf("cannot load: %w", err(ctx))
		}})
		return k
	}
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error {
		for range 3 {
			<-begun
		}
		return nil
	}, server.Prefetch(
		provide("err", context.Context.Err),
		provide("cause", context.Cause),
		provide("reads", func(ctx context.Context) error { _, err := never.Get(ctx); return err }),
	))
	require.Equal(t, 200, get(srv, "/"))
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Equal(t, map[string]uint64{
		"outcome=canceled property=cancelled-err": 1, "outcome=canceled property=cancelled-cause": 1, "outcome=canceled property=cancelled-reads": 1,
	}, r.metric(t, "property.resolutions"))
	for _, name := range []string{"err", "cause", "reads"} {
		require.Equal(t, codes.Unset, r.span(t, "resolve cancelled-"+name).Status().Code)
	}
}

func TestSpansBelowOneAroundTheServer(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv, err := server.New(server.Options{Observers: []server.Observer{r}, Logger: quiet})
	require.NoError(t, err)
	provideChain(srv)
	srv.HandleFunc("GET /users/{id}", func(_ http.ResponseWriter, req *server.Request) error {
		return req.Resolve("plan", "flags")
	})
	require.Equal(t, 200, get(r.middleware()(srv), "/users/7"))
	r.requireParent(t, "GET", "resolve plan")
	r.requireParent(t, "resolve plan", "resolve account")
	r.requireParent(t, "GET", "resolve flags")
}

// If the request's span is not sampled, properties have no spans and do not begin new traces.
func TestSampling(t *testing.T) {
	for _, within := range []bool{true, false} {
		r := newRig(t, sdktrace.NeverSample(), false)
		srv, err := server.New(server.Options{Observers: []server.Observer{r}, Logger: quiet})
		require.NoError(t, err)
		h := http.Handler(srv)
		if within {
			srv.Use(r.middleware())
		} else {
			h = r.middleware()(srv)
		}
		sampledRoots := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
		p := reqctx.NewKey[int](fmt.Sprintf("sampling-%v", within))
		reqctx.Provide(srv.Registry(), p, reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
			_, query := sampledRoots.Tracer("database").Start(ctx, "query")
			query.End()
			return 1, nil
		}})
		srv.HandleFunc("GET /", reading(p))
		require.Equal(t, 200, get(h, "/"))
		require.Empty(t, r.spans.Ended(), "the query belongs to the request's trace")

		require.Equal(t, 200, get(h, "/", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
		require.Empty(t, r.spans.Ended(), "the global propagator is none")
	}
}

// In a request without a span, properties have no spans.
func TestNoSpansWithoutTheRequests(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv, err := server.New(server.Options{Observers: []server.Observer{r}, Logger: quiet})
	require.NoError(t, err)
	provideChain(srv)
	srv.HandleFunc("GET /", reading(plan))
	require.Equal(t, 200, get(srv, "/"))
	require.Empty(t, r.spans.Ended())
	require.EqualValues(t, 1, r.metric(t, "property.resolutions")["outcome=ok property=plan"])
}

var errSecret = errors.New("no account of ada@example.com")

// outcomeServer returns a server with a property for each outcome, and a route that reads it.
func outcomeServer(t testing.TB, r *rig) *server.Server {
	srv := r.newServer(t, server.Options{})
	provide := func(name string, p reqctx.Prop[int]) {
		k := reqctx.NewKey[int]("outcome-" + name)
		reqctx.Provide(srv.Registry(), k, p)
		srv.HandleFunc("GET /"+name, reading(k))
	}
	fails := func(err error) reqctx.Prop[int] {
		return reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { return 0, err }}
	}
	waits := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	provide("ok", fails(nil))
	provide("rejected", fails(&ratelimit.DeniedError{}))
	provide("error", fails(errSecret))
	provide("panic", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { panic("at the disco") }})
	provide("timeout", reqctx.Prop[int]{Timeout: time.Second, Resolve: waits})
	provide("canceled", reqctx.Prop[int]{Resolve: waits})
	return srv
}

func TestOutcomes(t *testing.T) {
	for _, texts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, sdktrace.AlwaysSample(), texts)
			srv := outcomeServer(t, r)
			for name, status := range map[string]int{"ok": 200, "rejected": 429, "error": 500, "panic": 500, "timeout": 503} {
				require.Equal(t, status, get(srv, "/"+name), name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/canceled", nil))
			synctest.Wait()

			want := map[string]uint64{}
			for _, name := range []string{"ok", "rejected", "error", "panic", "timeout", "canceled"} {
				want["outcome="+name+" property=outcome-"+name] = 1
			}
			require.Equal(t, want, r.metric(t, "property.resolutions"))
			require.Len(t, r.metric(t, "property.resolve.duration"), 6)
			require.Equal(t, map[string]uint64{
				"http.route=/error reason=error": 1, "http.route=/panic reason=panic": 1, "http.route=/timeout reason=error": 1,
				"http.route=/canceled reason=canceled": 1,
			}, r.metric(t, "request.failures"))

			for name, text := range map[string]string{"ok": "", "rejected": "", "canceled": "", "panic": "panic", "timeout": "timeout", "error": "error"} {
				status := r.span(t, "resolve outcome-"+name).Status()
				if texts && text != "" {
					require.NotEmpty(t, status.Description)
				} else {
					require.Equal(t, text, status.Description, name)
				}
				require.Equal(t, text != "", status.Code == codes.Error, name)
			}
			require.Equal(t, texts, strings.Contains(r.span(t, "resolve outcome-error").Status().Description, "ada@example.com"))
		})
	}
}

// storeError is an error of the store of rate limits. The method Unwrap of its nil pointer panics.
type storeError struct{ err error }

func (*storeError) Error() string   { return "store" }
func (e *storeError) Unwrap() error { return e.err }

// TestErrorThatPanics checks that a resolution has a span and is counted even if a method of its error panics.
func TestErrorThatPanics(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	ctx, root := r.tracers.Tracer("").Start(t.Context(), "root")
	defer root.End()
	for _, name := range []string{"own", "ratelimit.a.take"} {
		func() {
			defer func() { _ = recover() }() // as the server does
			r.ResolveEnd(r.ResolveStart(ctx, name), name, time.Second, (*storeError)(nil))
		}()
		require.Equal(t, codes.Error, r.span(t, "resolve "+name).Status().Code)
		require.EqualValues(t, 1, r.metric(t, "property.resolutions")["outcome=error property="+name])
	}
}

// Several observers on one server, and nested servers with observers, only end their own spans.
func TestSeveralObserversAndServers(t *testing.T) {
	a, b := newRig(t, sdktrace.AlwaysSample(), false), newRig(t, sdktrace.AlwaysSample(), false)
	inner, err := server.New(server.Options{Observers: []server.Observer{a}, Logger: quiet})
	require.NoError(t, err)
	provideChain(inner)
	inner.HandleFunc("GET /", reading(plan))
	srv := a.newServer(t, server.Options{Observers: []server.Observer{b}})
	asks := reqctx.NewKey[int]("asks")
	reqctx.Provide(srv.Registry(), asks, reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
		w := httptest.NewRecorder()
		inner.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		return w.Code, nil
	}})
	srv.HandleFunc("GET /", reading(asks))
	require.Equal(t, 200, get(srv, "/"))
	require.Equal(t, []string{"resolve asks"}, b.spanNames())
	require.Contains(t, a.spanNames(), "resolve asks")
	a.requireParent(t, "resolve plan", "resolve account")
	require.Len(t, a.spans.Started(), len(a.spans.Ended()))
}
