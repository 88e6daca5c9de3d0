// Package telemetry makes OpenTelemetry spans and metrics of a server's requests: which properties they resolved, how
// long that took, and what the rate limits decided.
//
//	observer, err := telemetry.New(telemetry.Options{})
//	srv, err := server.New(server.Options{Observers: []server.Observer{observer}})
//	srv.Use(otelhttp.NewMiddleware("server", otelhttp.WithServerName("app:80")))
//
// otelhttp makes the spans and metrics of the requests themselves. In a request with a sampled span, each resolution
// of a property has a span below it, or below the span of the property that read it first. A Redis client with
// redisotel adds its commands below these.
//
// docs/observing.md describes the metrics. Their attributes are names that the program has chosen for properties,
// policies, rules and routes. They never contain keys of rate limits, sessions or paths. A metric has at most 512
// combinations of attributes. Further combinations are counted together.
//
// The package imports only OpenTelemetry's API. Without an SDK it does nothing, and costs some hundred nanoseconds
// for each resolution.
package telemetry
