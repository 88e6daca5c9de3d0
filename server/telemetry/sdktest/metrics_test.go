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

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/telemetry"
	"github.com/lazyreq/lazyreq/session"
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
	require.Equal(t, map[string]uint64{"policy=api": 5}, r.metric(t, "ratelimit.check.duration"))
	require.Empty(t, r.metric(t, "ratelimit.backend.errors"))
	require.Empty(t, r.metric(t, "request.failures"))
}

// A check's duration leaves out what the policy's key has read.
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

// What clients send is in no attribute, and the sets of attributes are bounded.
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

// A raw connection has properties without an HTTP request.
func TestRawConnections(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv := r.newServer(t, server.Options{})
	provideChain(srv)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- srv.ServeConns(l, func(c *server.Conn) error {
			_, err := plan.Get(c.Context())
			return err
		})
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	_, _ = conn.Read(make([]byte, 1)) // until the handler has returned
	require.NoError(t, conn.Close())
	require.NoError(t, srv.Shutdown(t.Context()))
	<-served
	require.EqualValues(t, 1, r.metric(t, "property.resolutions")["outcome=ok property=account"])
}

// A provider that has an instrument of another kind by that name is an error, and New of the
// same provider twice is not: both count.
func TestNewTwice(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	again, err := telemetry.New(telemetry.Options{TracerProvider: r.tracers, MeterProvider: r.meters})
	require.NoError(t, err)
	srv := r.newServer(t, server.Options{Observers: []server.Observer{again}})
	provideChain(srv)
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := account.Get(req.Context())
		return err
	})
	require.Equal(t, 200, get(srv, "/"))
	require.Equal(t, map[string]uint64{"outcome=ok property=account": 2}, r.metric(t, "property.resolutions"))
}

// After the provider's end, requests go on.
func TestProvidersThatWereShutDown(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	srv := r.newServer(t, server.Options{})
	provideChain(srv)
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := plan.Get(req.Context())
		return err
	})
	require.NoError(t, r.tracers.Shutdown(t.Context()))
	require.NoError(t, r.meters.Shutdown(t.Context()))
	require.Equal(t, 200, get(srv, "/"))
}

// The cost with an SDK: metrics only, and metrics and spans.
func BenchmarkWithSDK(b *testing.B) {
	for name, sampler := range map[string]sdktrace.Sampler{"unsampled": sdktrace.NeverSample(), "sampled": sdktrace.AlwaysSample()} {
		b.Run(name, func(b *testing.B) {
			tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
			meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
			o, err := telemetry.New(telemetry.Options{TracerProvider: tracers, MeterProvider: meters})
			require.NoError(b, err)
			ctx, span := tracers.Tracer("bench").Start(b.Context(), "request")
			defer span.End()
			b.ReportAllocs()
			for b.Loop() {
				o.ResolveEnd(o.ResolveStart(ctx, "measured"), "measured", time.Millisecond, nil)
			}
		})
	}
}
