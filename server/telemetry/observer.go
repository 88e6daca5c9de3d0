package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

const scopeName = "github.com/lazyreq/lazyreq/server/telemetry"

// Options configure an [Observer]. The zero value is usable.
type Options struct {
	// TracerProvider makes the spans. The zero value means the global one.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics. The zero value means the global one.
	MeterProvider metric.MeterProvider
	// ErrorTexts adds the texts of errors to spans. They may contain personal data, such as the key of a rate limit.
	ErrorTexts bool
}

// Observer is a [server.Observer] that makes spans and metrics. Make it with [New]. Attach it to a server once.
// Several servers may share it. It is safe for concurrent use.
type Observer struct {
	tracer     trace.Tracer
	metrics    metrics
	errorTexts bool
}

// New returns an Observer. It returns an error if an instrument cannot be made, for example because the MeterProvider
// has a different one with the same name.
func New(o Options) (*Observer, error) {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	observer := &Observer{tracer: o.TracerProvider.Tracer(scopeName), errorTexts: o.ErrorTexts}
	if err := observer.metrics.init(o.MeterProvider.Meter(scopeName)); err != nil {
		return nil, err
	}
	return observer, nil
}

// resolution is the context of a resolution with a span.
type resolution struct {
	context.Context
	observer *Observer
	flight   *lazy.Flight // of the property
	span     trace.Span
}

// Value returns r to its observer. The span alone is not enough, because it may belong to another observer.
func (r *resolution) Value(key any) any {
	if o, ok := key.(*Observer); ok && o == r.observer {
		return r
	}
	return r.Context.Value(key)
}

// ResolveStart implements [reqctx.Observer].
func (o *Observer) ResolveStart(ctx context.Context, name string) context.Context {
	parent := parentOf(ctx)
	id := parent.SpanContext()
	if !id.IsValid() {
		return ctx
	}
	if !trace.SpanContextFromContext(ctx).Equal(id) { // parent is not the span of ctx
		ctx = trace.ContextWithSpan(ctx, parent)
	}
	if !parent.IsRecording() && !id.IsSampled() {
		return ctx
	}
	p := o.metrics.properties.get(name)
	started, span := o.tracer.Start(ctx, p.spanName, p.spanStart...)
	return &resolution{started, o, lazy.Current(ctx), span}
}

// parentOf returns the span of the first reader of the property that is resolved under ctx. If that reader has no
// span, it returns the handler's span, which may belong to a middleware inside the server.
func parentOf(ctx context.Context) trace.Span {
	span := trace.SpanFromContext(reqctx.Reader(ctx))
	if span.SpanContext().IsValid() {
		return span
	}
	c := reqctx.From(ctx)
	if c == nil {
		return span
	}
	if r := c.Request(); r != nil && r.Context() != context.Context(c) {
		return trace.SpanFromContext(r.Context())
	}
	return span
}

// ResolveEnd implements [reqctx.Observer].
func (o *Observer) ResolveEnd(ctx context.Context, name string, took time.Duration, err error) {
	out := outcomeOf(ctx, name, err)
	// If the resolution has no span, r may belong to an outer request.
	if r, ok := ctx.Value(o).(*resolution); ok && r.flight == lazy.Current(ctx) {
		r.end(out, err)
	}
	o.metrics.recordResolution(ctx, name, out, took)
}

// end ends the span.
func (r *resolution) end(out outcome, err error) {
	if out != resolved {
		r.span.SetAttributes(attribute.String("outcome", out.String()))
	}
	if out.failed() {
		text := out.String()
		if r.observer.errorTexts && err != nil {
			text = errorText(err)
		}
		r.span.SetStatus(codes.Error, text)
	}
	r.span.End()
}
