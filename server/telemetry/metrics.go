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
	"github.com/lazyreq/lazyreq/reqctx"
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
	decided     *cache[decision, []metric.AddOption]
	failedRoute *cache[failure, []metric.AddOption]
}

// property contains the options for all resolutions of a property.
type property struct {
	spanName    string
	spanStart   []trace.SpanStartOption
	resolutions [outcomes][]metric.AddOption
	duration    []metric.RecordOption

	backendErrors []metric.AddOption    // nil unless it is a take or a count of a rate limit
	checkDuration []metric.RecordOption // nil unless it is a take
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
		metric.WithDescription("Duration of charges of rate limits, without the properties that they read."))
	m.backendErrors, errs[4] = meter.Int64Counter("ratelimit.backend.errors",
		metric.WithUnit("{error}"), metric.WithDescription("Charges and counts that the store of rate limits could not answer."))
	m.failures, errs[5] = meter.Int64Counter("request.failures",
		metric.WithUnit("{request}"), metric.WithDescription("Requests that have failed, or whose response was cut off."))
	m.properties = newCache(newProperty, func(string) string { return otherName })
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
	if policy, what, ok := cutPolicy(name); ok && what != "key" { // the others return its errors, too
		by := with(attribute.String("policy", clip(policy, maxName)))
		p.backendErrors = []metric.AddOption{by}
		if what == "take" {
			p.checkDuration = []metric.RecordOption{by}
		}
	}
	return p
}

// cutPolicy cuts the name of a rate limit's property, such as ratelimit.search.take, into search and take.
func cutPolicy(property string) (policy, what string, ok bool) {
	rest, ok := strings.CutPrefix(property, "ratelimit.")
	policy, what, _ = strings.Cut(rest, ".") // names of policies have no dots
	return policy, what, ok
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
func (m *metrics) recordResolution(ctx context.Context, name string, out outcome, took time.Duration, err error) {
	if !m.resolutions.Enabled(ctx) && !m.resolveDuration.Enabled(ctx) && !m.backendErrors.Enabled(ctx) {
		return
	}
	p := m.properties.get(name)
	m.resolutions.Add(ctx, 1, p.resolutions[out]...)
	m.resolveDuration.Record(ctx, took.Seconds(), p.duration...)
	if p.backendErrors != nil && errors.Is(err, ratelimit.ErrStore) {
		m.backendErrors.Add(ctx, 1, p.backendErrors...)
	}
}

// RequestEnd implements [server.Observer].
func (o *Observer) RequestEnd(ctx context.Context, info server.RequestInfo) {
	m := &o.metrics
	inRequest := info.Request.Context() // has the span, for exemplars
	if reason := failureOf(ctx, &info); reason != "" {
		m.failures.Add(inRequest, 1, m.failedRoute.get(failure{route(info.Pattern), reason})...)
	}
	if m.decisions.Enabled(ctx) || m.checkDuration.Enabled(ctx) {
		m.recordCharges(inRequest, reqctx.From(ctx))
	}
}

// route returns the path of a pattern.
func route(pattern string) string {
	if i := strings.IndexByte(pattern, '/'); i > 0 {
		return pattern[i:]
	}
	return pattern
}

// charge is a charge of a rate limit, or a property that a charge has read.
type charge struct {
	of   string // the property of the charge
	took time.Duration
}

// recordCharges records the charges of c's request.
func (m *metrics) recordCharges(ctx context.Context, c *reqctx.Context) {
	var chargeBuf, readBuf [4]charge
	charges, reads := chargeBuf[:0], readBuf[:0]
	for name, info := range c.Props() {
		if info.State != reqctx.Resolved && info.State != reqctx.Failed {
			continue
		}
		if m.properties.get(name).checkDuration != nil {
			charges = append(charges, charge{name, info.Took})
		}
		if strings.HasPrefix(info.By, "ratelimit.") {
			reads = append(reads, charge{info.By, info.Took})
		}
	}
	for _, charge := range charges {
		own := charge.took
		for _, read := range reads {
			if read.of == charge.of {
				own -= read.took
			}
		}
		m.checkDuration.Record(ctx, max(own, 0).Seconds(), m.properties.get(charge.of).checkDuration...)
	}
	if len(charges) == 0 {
		return
	}
	for d := range ratelimit.Decisions(c) {
		m.decisions.Add(ctx, 1, m.decided.get(decisionOf(&d))...)
	}
}

func decisionOf(d *ratelimit.Decision) decision {
	out := "allowed"
	switch r := &d.Result; {
	case r.Source == ratelimit.FromShadow && r.Violated:
		out = "shadow"
	case !r.Allowed && r.Violated:
		out = "denied"
	}
	return decision{d.Policy, d.Rule.Name(), out, d.Result.Source}
}
