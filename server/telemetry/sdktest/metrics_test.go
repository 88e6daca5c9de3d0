package sdktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/telemetry"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/redisstore"
)

func TestDecisions(t *testing.T) {
	r := newRig(t, sdktrace.NeverSample(), false)
	store, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	tried := ratelimit.PerHour(2).WithName("tried")
	shadowed, err := layer.New(store, layer.Options{Shadow: &layer.ShadowOptions{
		Match: func(op ratelimit.Op) bool { return op.Rule == tried },
	}})
	require.NoError(t, err)
	srv := r.newServer(t, server.Options{RateLimitStore: shadowed, RateLimits: []*ratelimit.Policy{
		ratelimit.NewPolicy("api", ratelimit.ByHeader("X-Key"), ratelimit.PerMinute(3), tried),
	}})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		_ = req.RateLimit().Require()
		return req.RateLimit().Require() // charged once
	})
	for range 4 {
		get(srv, "/", "X-Key", "k")
	}
	require.Equal(t, 400, get(srv, "/"), "without a key there is no decision")
	require.Equal(t, map[string]uint64{
		"outcome=allowed policy=api rule=60s source=store":    3,
		"outcome=denied policy=api rule=60s source=store":     1,
		"outcome=allowed policy=api rule=tried source=shadow": 3,
		"outcome=shadow policy=api rule=tried source=shadow":  1,
	}, r.metric(t, "ratelimit.decisions"))
	require.Equal(t, map[string]uint64{"policy=api": 8}, r.metric(t, "ratelimit.check.duration"), "two rules")
	require.Empty(t, r.metric(t, "ratelimit.backend.errors"))
	require.Empty(t, r.metric(t, "request.failures"))
}

// Decisions and failures of limiters and middlewares are measured if their store is observed. Their keys are not.
func TestDecisionsOutsideTheServer(t *testing.T) {
	r := newRig(t, sdktrace.NeverSample(), false)
	memory, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	store := ratelimit.Observe(memory, r.Decided)
	limiter, err := ratelimit.NewLimiter(store, ratelimit.PerMinute(1))
	require.NoError(t, err)
	for range 2 {
		_, err = limiter.Take(t.Context(), "hostile:key", 1)
		require.NoError(t, err)
	}
	_, err = limiter.Peek(t.Context(), "hostile:key", 1)
	require.NoError(t, err)
	meter, err := ratelimit.NewLimiter(store, ratelimit.Buckets(ratelimit.BucketOptions{}).WithName("meter"))
	require.NoError(t, err)
	_, err = meter.Add(t.Context(), "hostile:key", 1)
	require.NoError(t, err)
	policy := ratelimit.NewPolicy("inner", ratelimit.ByIP(), ratelimit.PerMinute(1))
	limited, err := ratelimit.Middleware(store, policy, ratelimit.MiddlewareOptions{})
	require.NoError(t, err)
	require.Equal(t, 404, get(limited(http.NotFoundHandler()), "/"))
	require.Equal(t, map[string]uint64{
		"outcome=allowed policy= rule=60s source=store":      1,
		"outcome=denied policy= rule=60s source=store":       1,
		"outcome=allowed policy= rule=meter source=store":    1,
		"outcome=allowed policy=inner rule=60s source=store": 1,
	}, r.metric(t, "ratelimit.decisions"))
	require.Equal(t, map[string]uint64{"policy=": 3, "policy=inner": 1}, r.metric(t, "ratelimit.check.duration"))
	_, err = limiter.Peek(t.Context(), "", 1)
	require.True(t, ratelimit.IsOpError(err))
	require.Empty(t, r.metric(t, "ratelimit.backend.errors"), "the store was not asked")
}

// The duration of a check does not include properties that the policy's key has read.
func TestCheckDurationIsTheChargesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, sdktrace.NeverSample(), false)
		slow := reqctx.NewKey[string]("slow-key")
		srv := r.newServer(t, server.Options{RateLimits: []*ratelimit.Policy{ratelimit.NewPolicy("slow", ratelimit.ByProperty(slow, func(k string) string { return k }), ratelimit.PerMinute(3))}})
		reqctx.Provide(srv.Registry(), slow, reqctx.Prop[string]{Resolve: func(context.Context) (string, error) {
			<-time.After(time.Second)
			return "k", nil
		}})
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error { return req.RateLimit().Require() })
		require.Equal(t, 200, get(srv, "/"))
		sum := func(name, attrs string) float64 {
			for _, m := range r.collect(t) {
				if m.Name != name {
					continue
				}
				require.Equal(t, "s", m.Unit)
				for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
					if attributes(p.Attributes) == attrs {
						return p.Sum
					}
				}
			}
			return -1
		}
		require.InDelta(t, 1, sum("property.resolve.duration", "property=slow-key"), 1e-9)
		require.InDelta(t, 1, sum("property.resolve.duration", "property=ratelimit.slow.take"), 1e-9)
		require.InDelta(t, 0, sum("ratelimit.check.duration", "policy=slow"), 1e-9)
	})
}

// No attribute contains data of clients, and a metric has a limited number of attribute sets.
func TestAttributesAreBounded(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv := r.newServer(t, server.Options{RateLimits: []*ratelimit.Policy{{
		Name: "tenants", Key: ratelimit.ByHeader("X-Key"),
		RulesFor: func(_ context.Context, r *http.Request) ([]ratelimit.Rule, error) {
			return []ratelimit.Rule{ratelimit.PerMinute(3).WithName("t" + r.Header.Get("X-Tenant"))}, nil
		},
	}}})
	srv.HandleFunc("GET /users/{id}", func(_ http.ResponseWriter, req *server.Request) error {
		if err := req.RateLimit().Require(); err != nil {
			return err
		}
		return errors.New("hostile-error " + req.PathValue("id"))
	})
	hostile := "hostile-" + strings.Repeat("k", 20) + "\xff"
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 300 {
				get(srv, fmt.Sprintf("/users/hostile-%d-%d", g, i), "X-Key", hostile+fmt.Sprint(g, i), "X-Tenant", fmt.Sprint(g*300+i))
				get(srv, fmt.Sprintf("/hostile-%d", i))
			}
		})
	}
	wg.Wait()
	for _, m := range r.collect(t) {
		if strings.HasPrefix(m.Name, "http.") {
			continue // otelhttp's
		}
		values := r.metric(t, m.Name)
		require.LessOrEqual(t, len(values), 513, m.Name)
		total := uint64(0)
		for attrs, n := range values {
			require.NotContains(t, attrs, "hostile")
			total += n
		}
		want := 1200
		if strings.HasPrefix(m.Name, "property.") {
			want *= 2 // the key and the take
		}
		require.EqualValues(t, want, total, m.Name)
	}
	require.NotEmpty(t, r.metric(t, "ratelimit.decisions")["outcome=allowed policy=(other) rule=(other) source=store"])
	require.Equal(t, map[string]uint64{"http.route=/users/{id} reason=error": 1200}, r.metric(t, "request.failures"))
	for _, s := range r.spans.Ended() {
		if !strings.HasPrefix(s.Name(), "resolve ") {
			continue
		}
		require.NotContains(t, s.Status().Description, "hostile")
		for _, a := range s.Attributes() {
			require.NotContains(t, a.Value.String(), "hostile")
		}
	}
}

func TestFailures(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv := r.newServer(t, server.Options{})
	conflicts := reqctx.NewKey[int]("conflicts")
	reqctx.Provide(srv.Registry(), conflicts, reqctx.Prop[int]{Commit: func(context.Context, int, int, http.Header) error {
		return &session.Error{Action: "save", Err: session.ErrConflict}
	}})
	handle := func(path string, h server.HandlerFunc) { srv.HandleFunc("GET "+path, h) }
	handle("/fine", func(http.ResponseWriter, *server.Request) error { return nil })
	handle("/panic", func(http.ResponseWriter, *server.Request) error { panic("oh") })
	handle("/abort", func(http.ResponseWriter, *server.Request) error { panic(http.ErrAbortHandler) })
	handle("/stream", func(w http.ResponseWriter, _ *server.Request) error {
		_, _ = w.Write([]byte("part"))
		_ = http.NewResponseController(w).Flush()
		return server.Errorf(404, "the rest is missing")
	})
	handle("/commit", func(_ http.ResponseWriter, req *server.Request) error { return conflicts.Set(req.Context(), 1) })
	handle("/hijack", func(w http.ResponseWriter, _ *server.Request) error {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		return errors.Join(conn.Close(), errors.New("of the socket"))
	})
	ts := httptest.NewServer(srv)
	defer ts.Close()
	for _, path := range []string{"fine", "panic", "abort", "stream", "commit", "hijack", "unknown"} {
		res, err := http.Get(ts.URL + "/" + path)
		if err == nil {
			_ = res.Body.Close()
		}
	}
	http.DefaultClient.CloseIdleConnections()
	ts.Close()
	require.Equal(t, map[string]uint64{
		"http.route=/panic reason=panic":             1,
		"http.route=/abort reason=aborted":           1,
		"http.route=/stream reason=cut_off":          1,
		"http.route=/commit reason=session_conflict": 1,
		"http.route=/hijack reason=error":            1,
	}, r.metric(t, "request.failures"))
}

// Resolutions of raw connections are counted, although there is no HTTP request.
func TestRawConnections(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv := r.newServer(t, server.Options{})
	provideChain(srv)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- srv.ServeConns(l, func(c *server.Conn) error { return plan.Require(c.Context()) })
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	_, _ = conn.Read(make([]byte, 1)) // until the handler has returned
	require.NoError(t, conn.Close())
	require.NoError(t, srv.Shutdown(t.Context()))
	<-served
	require.EqualValues(t, 1, r.metric(t, "property.resolutions")["outcome=ok property=account"])
}

// New returns an error if the provider has an instrument with the same name and another kind. Two calls of New with
// the same provider succeed, and both observers count.
func TestNewTwice(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	again, err := telemetry.New(telemetry.Options{TracerProvider: r.tracers, MeterProvider: r.meters})
	require.NoError(t, err)
	srv := r.newServer(t, server.Options{Observers: []server.Observer{again}})
	provideChain(srv)
	srv.HandleFunc("GET /", reading(account))
	require.Equal(t, 200, get(srv, "/"))
	require.Equal(t, map[string]uint64{"outcome=ok property=account": 2}, r.metric(t, "property.resolutions"))
}

// After the providers were shut down, requests still work.
func TestProvidersThatWereShutDown(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv := r.newServer(t, server.Options{})
	provideChain(srv)
	srv.HandleFunc("GET /", reading(plan))
	require.NoError(t, r.tracers.Shutdown(t.Context()))
	require.NoError(t, r.meters.Shutdown(t.Context()))
	require.Equal(t, 200, get(srv, "/"))
}

var visits = session.NewCounter("visits")

// redisServer returns a server whose sessions and limits use client, which redisotel instruments.
func redisServer(t *testing.T, r *rig, client *redis.Client) *server.Server {
	require.NoError(t, redisotel.InstrumentTracing(client, redisotel.WithTracerProvider(r.tracers)))
	sessions, err := redisstore.New(client, redisstore.Options{})
	require.NoError(t, err)
	limits, err := ratestore.New(client, ratestore.Options{})
	require.NoError(t, err)
	guarded, err := layer.New(limits, layer.Options{Failover: &layer.FailoverOptions{Mode: layer.Open}})
	require.NoError(t, err)
	policy := ratelimit.NewPolicy("visits", ratelimit.ByHeader("X-Key"), ratelimit.PerMinute(2))
	srv := r.newServer(t, server.Options{
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, SessionStore: sessions,
		RateLimits: []*ratelimit.Policy{policy}, RateLimitStore: guarded,
	})
	srv.HandleFunc("GET /visit", func(_ http.ResponseWriter, req *server.Request) error {
		if err := req.RateLimit().Require(); err != nil {
			return err
		}
		return visits.Add(req.Context(), 1)
	})
	return srv
}

// All commands of a request belong to its trace, below the property that sends them.
func TestRedisCommandsAreBelowTheirProperty(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	client := testhost.StartRedis(t).Client(func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	srv := redisServer(t, r, client)
	require.NoError(t, client.Ping(t.Context()).Err()) // dials
	for range 3 {                                      // the first ones load the scripts
		get(srv, "/visit", "X-Key", t.Name())
	}
	warm := len(r.spans.Ended())
	cookie := visitedCookie(t, srv)
	require.Equal(t, 200, get(srv, "/visit", "X-Key", "another", "Cookie", cookie))

	spans := r.spans.Ended()[warm:]
	byID := map[string]sdktrace.ReadOnlySpan{}
	for _, s := range spans {
		byID[s.SpanContext().SpanID().String()] = s
	}
	var parents []string
	for _, s := range spans {
		if strings.HasPrefix(s.Name(), "evalsha") || strings.HasPrefix(s.Name(), "redis.pipeline") {
			parent := byID[s.Parent().SpanID().String()]
			require.NotNil(t, parent, "%s is in no request's trace", s.Name())
			parents = append(parents, parent.Name())
		}
	}
	require.Equal(t, []string{
		"resolve ratelimit.visits.take", "GET /visit", // a new session's save
		"resolve ratelimit.visits.take", "resolve session", "GET /visit",
	}, parents)
}

func visitedCookie(t *testing.T, h http.Handler) string {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/visit", nil)
	r.Header.Set("X-Key", "visitor")
	h.ServeHTTP(w, r)
	require.Len(t, w.Result().Cookies(), 1)
	c := w.Result().Cookies()[0]
	return c.Name + "=" + c.Value
}

// If the store is down, decisions have a different source, and nothing hangs.
func TestRedisDown(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	redisServer := testhost.StartRedis(t)
	client := redisServer.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	sessions, err := redisstore.New(client, redisstore.Options{})
	require.NoError(t, err)
	limits, err := ratestore.New(client, ratestore.Options{})
	require.NoError(t, err)
	guarded, err := layer.New(limits, layer.Options{Failover: &layer.FailoverOptions{Mode: layer.Open, Logger: quiet}})
	require.NoError(t, err)
	bare := r.newServer(t, server.Options{
		SessionStore: sessions, RateLimitStore: limits,
		RateLimits: []*ratelimit.Policy{ratelimit.NewPolicy("bare", ratelimit.ByIP(), ratelimit.PerMinute(2))},
	})
	bare.HandleFunc("GET /bare", func(_ http.ResponseWriter, req *server.Request) error { return req.RateLimit().Require() })
	bare.HandleFunc("GET /session", func(_ http.ResponseWriter, req *server.Request) error {
		return visits.Add(req.Context(), 1)
	})
	failover := r.newServer(t, server.Options{
		RateLimitStore: guarded,
		RateLimits:     []*ratelimit.Policy{ratelimit.NewPolicy("failover", ratelimit.ByIP(), ratelimit.PerMinute(2))},
	})
	failover.HandleFunc("GET /failover", func(_ http.ResponseWriter, req *server.Request) error { return req.RateLimit().Require() })

	redisServer.Stop()
	require.Equal(t, 503, get(bare, "/bare"))
	require.Equal(t, 503, get(bare, "/session"))
	require.Equal(t, 200, get(failover, "/failover"))
	require.Equal(t, map[string]uint64{"policy=bare": 1}, r.metric(t, "ratelimit.backend.errors"))
	require.Equal(t, map[string]uint64{"outcome=allowed policy=failover rule=60s source=failover": 1}, r.metric(t, "ratelimit.decisions"))
	require.Equal(t, map[string]uint64{
		"http.route=/bare reason=ratelimit": 1, "http.route=/session reason=session": 1,
	}, r.metric(t, "request.failures"))
	require.Equal(t, map[string]uint64{"policy=bare": 1, "policy=failover": 1}, r.metric(t, "ratelimit.check.duration"))
}
