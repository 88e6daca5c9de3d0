// Package sdktest tests package telemetry with OpenTelemetry's SDK, otelhttp and redisotel, which
// are not among the library's dependencies.
package sdktest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig contains an observer and the spans and metrics that it has recorded.
type rig struct {
	*telemetry.Observer
	tracers *sdktrace.TracerProvider
	meters  *sdkmetric.MeterProvider
	spans   *tracetest.SpanRecorder
	reader  *sdkmetric.ManualReader
}

// newRig returns a rig whose root spans are sampled by sampler.
func newRig(t testing.TB, sampler sdktrace.Sampler, errorTexts bool) *rig {
	r := &rig{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	r.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans), sdktrace.WithSampler(sdktrace.ParentBased(sampler)))
	r.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	var err error
	r.Observer, err = telemetry.New(telemetry.Options{TracerProvider: r.tracers, MeterProvider: r.meters, ErrorTexts: errorTexts})
	require.NoError(t, err)
	return r
}

// middleware returns otelhttp's middleware with the rig's providers.
func (r *rig) middleware() func(http.Handler) http.Handler {
	return otelhttp.NewMiddleware("server", otelhttp.WithTracerProvider(r.tracers), otelhttp.WithMeterProvider(r.meters))
}

// newServer returns a server that r observes, with otelhttp as its middleware.
func (r *rig) newServer(t testing.TB, o server.Options) *server.Server {
	o.Observers = append(o.Observers, r)
	if o.Logger == nil {
		o.Logger = quiet
	}
	srv, err := server.New(o)
	require.NoError(t, err)
	srv.Use(r.middleware())
	return srv
}

// span returns the only span with this name.
func (r *rig) span(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range r.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "spans %q of %q", name, r.spanNames())
	return found[0]
}

func (r *rig) spanNames() (names []string) {
	for _, s := range r.spans.Ended() {
		names = append(names, s.Name())
	}
	return names
}

// requireParent checks that the span child is directly below the span parent.
func (r *rig) requireParent(t *testing.T, parent, child string) {
	t.Helper()
	p, c := r.span(t, parent), r.span(t, child)
	require.Equal(t, p.SpanContext().TraceID(), c.SpanContext().TraceID())
	require.Equal(t, p.SpanContext().SpanID(), c.Parent().SpanID(), "%q is not below %q", child, parent)
}

// metric returns the values of a metric: the sums of a counter, or the numbers of measurements of a histogram. Keys
// are attributes such as "a=1 b=2".
func (r *rig) metric(t *testing.T, name string) map[string]uint64 {
	t.Helper()
	values := map[string]uint64{}
	for _, m := range r.collect(t) {
		if m.Name != name {
			continue
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				values[attributes(p.Attributes)] += uint64(p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				values[attributes(p.Attributes)] += p.Count
			}
		default:
			require.Failf(t, "unknown kind of metric", "%s: %T", name, data)
		}
	}
	return values
}

func (r *rig) collect(t *testing.T) (all []metricdata.Metrics) {
	var data metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(context.Background(), &data))
	for _, scope := range data.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	return all
}

func attributes(set attribute.Set) string {
	var all []string
	for _, kv := range set.ToSlice() {
		all = append(all, string(kv.Key)+"="+kv.Value.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// get sends a request to h and returns the status of the response.
func get(h http.Handler, path string, header ...string) int {
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// reading returns a handler that reads a property.
func reading[T any](key reqctx.Key[T]) server.HandlerFunc {
	return func(_ http.ResponseWriter, req *server.Request) error {
		_, err := key.Get(req)
		return err
	}
}
