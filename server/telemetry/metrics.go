package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// otherName replaces names beyond maxEntries.
const otherName = "(other)"

// buckets lists the upper bounds of the histograms, in seconds.
var buckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// metrics contains the instruments and their attributes.
type metrics struct {
	resolutions     metric.Int64Counter
	resolveDuration metric.Float64Histogram
	decisions       metric.Int64Counter
	checkDuration   metric.Float64Histogram
	backendErrors   metric.Int64Counter
	failures        metric.Int64Counter

	properties  *cache[string, *property]
	policies    *cache[string, policy]
	decided     *cache[decision, []metric.AddOption]
	failedRoute *cache[failure, []metric.AddOption]
}

// property contains the options for all resolutions of a property.
type property struct {
	spanName    string
	spanStart   []trace.SpanStartOption
	resolutions [outcomes][]metric.AddOption
	duration    []metric.RecordOption
}

// policy contains the options for the measurements of a policy.
type policy struct {
	errors   []metric.AddOption
	duration []metric.RecordOption
}

// decision contains the attributes of a decision of a rate limit.
type decision struct {
	policy, rule, outcome string
	source                ratelimit.Source
}

// failure contains the attributes of a failed request.
type failure struct{ route, reason string }

func (m *metrics) init(meter metric.Meter) error {
	var errs [6]error
	m.resolutions, errs[0] = meter.Int64Counter("property.resolutions",
		metric.WithUnit("{resolution}"), metric.WithDescription("Resolutions of properties."))
	m.resolveDuration, errs[1] = meter.Float64Histogram("property.resolve.duration",
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(buckets...),
		metric.WithDescription("Duration of resolutions, with the properties that they read."))
	m.decisions, errs[2] = meter.Int64Counter("ratelimit.decisions",
		metric.WithUnit("{decision}"), metric.WithDescription("Decisions by the rules of rate limits."))
	m.checkDuration, errs[3] = meter.Float64Histogram("ratelimit.check.duration",
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(buckets...),
		metric.WithDescription("Duration of charges of rate limits."))
	m.backendErrors, errs[4] = meter.Int64Counter("ratelimit.backend.errors",
		metric.WithUnit("{error}"), metric.WithDescription("Ops that the store of rate limits could not answer."))
	m.failures, errs[5] = meter.Int64Counter("request.failures",
		metric.WithUnit("{request}"), metric.WithDescription("Requests that have failed, or whose response was cut off."))
	m.properties = newCache(newProperty, func(string) string { return otherName })
	m.policies = newCache(newPolicy, func(string) string { return otherName })
	m.decided = newCache(decision.options, func(d decision) decision { return decision{otherName, otherName, d.outcome, d.source} })
	m.failedRoute = newCache(failure.options, func(f failure) failure { return failure{otherName, f.reason} })
	return errors.Join(errs[:]...)
}

func newProperty(name string) *property {
	text := clip(name, maxName)
	of := attribute.String("property", text)
	p := &property{
		spanName:  "resolve " + text,
		spanStart: []trace.SpanStartOption{trace.WithAttributes(of)},
		duration:  []metric.RecordOption{with(of)},
	}
	for out := range outcomes {
		p.resolutions[out] = []metric.AddOption{with(of, attribute.String("outcome", out.String()))}
	}
	return p
}

func newPolicy(name string) policy {
	by := with(attribute.String("policy", clip(name, maxName)))
	return policy{[]metric.AddOption{by}, []metric.RecordOption{by}}
}

func (d decision) options() []metric.AddOption {
	return []metric.AddOption{with(
		attribute.String("policy", clip(d.policy, maxName)),
		attribute.String("rule", clip(d.rule, maxName)),
		attribute.String("outcome", d.outcome),
		attribute.String("source", strings.ReplaceAll(d.source.String(), " ", "_")),
	)}
}

func (f failure) options() []metric.AddOption {
	return []metric.AddOption{with(
		attribute.String("http.route", clip(f.route, maxName)),
		attribute.String("reason", f.reason),
	)}
}

func with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

// recordResolution records the end of a resolution.
func (m *metrics) recordResolution(ctx context.Context, name string, out outcome, took time.Duration) {
	if !m.resolutions.Enabled(ctx) && !m.resolveDuration.Enabled(ctx) {
		return
	}
	p := m.properties.get(name)
	m.resolutions.Add(ctx, 1, p.resolutions[out]...)
	m.resolveDuration.Record(ctx, took.Seconds(), p.duration...)
}

// RequestEnd implements [server.Observer].
func (o *Observer) RequestEnd(ctx context.Context, info server.RequestInfo) {
	m := &o.metrics
	if reason := failureOf(ctx, &info); reason != "" {
		inRequest := info.Request.Context() // has the span, for exemplars
		m.failures.Add(inRequest, 1, m.failedRoute.get(failure{route(info.Pattern), reason})...)
	}
}

// route returns the path of a pattern.
func route(pattern string) string {
	if i := strings.IndexByte(pattern, '/'); i > 0 {
		return pattern[i:]
	}
	return pattern
}

// Decided measures an op of a rate limit. A server calls it for its policies. For other ops, such as those of a
// [ratelimit.Limiter], pass it to [ratelimit.Observe]: their attribute policy is empty.
func (o *Observer) Decided(ctx context.Context, e ratelimit.Event) {
	m := &o.metrics
	if !m.decisions.Enabled(ctx) && !m.checkDuration.Enabled(ctx) && !m.backendErrors.Enabled(ctx) {
		return
	}
	p := m.policies.get(e.Policy)
	if errors.Is(e.Err, ratelimit.ErrStore) {
		m.backendErrors.Add(ctx, 1, p.errors...)
	}
	if e.Op.Kind != ratelimit.Take && (e.Op.Kind != ratelimit.Add || e.Op.Rule.Limit() > 0) { // takes of a meter are adds
		return
	}
	m.checkDuration.Record(ctx, e.Took.Seconds(), p.duration...)
	if e.Err == nil {
		m.decisions.Add(ctx, 1, m.decided.get(decisionOf(&e))...)
	}
}

func decisionOf(e *ratelimit.Event) decision {
	out := "allowed"
	switch r := &e.Result; {
	case r.Source == ratelimit.FromShadow && r.Violated:
		out = "shadow"
	case !r.Allowed && r.Violated:
		out = "denied"
	}
	return decision{e.Policy, e.Op.Rule.Name(), out, e.Result.Source}
}
