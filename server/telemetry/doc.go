// Package telemetry gives a server's requests OpenTelemetry spans and metrics: which properties
// they resolved, how long that took, and what the rate limits decided.
//
//	observer, err := telemetry.New(telemetry.Options{})
//	srv, err := server.New(server.Options{Observers: []server.Observer{observer}})
//	srv.Use(otelhttp.NewMiddleware("server", otelhttp.WithServerName("app:80")))
//
// Spans and metrics of the requests themselves are otelhttp's. In a request that has a span which
// is sampled, each resolution of a property is a span below it, and below the span of the property
// whose resolution read it. A Redis client with redisotel adds its commands below these.
//
// The metrics are described in docs/observing.md. Their attributes are names that the program has
// chosen: of properties, policies, rules and routes. A rate limit's key, a session or a path is
// never one, and a metric has at most 512 sets of attributes and the ones for what is beyond them.
//
// The package imports only OpenTelemetry's API. Without an SDK it does nothing, at a cost of some
// hundred nanoseconds for each resolution.
package telemetry
