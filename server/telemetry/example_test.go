package telemetry_test

import (
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/telemetry"
)

// Without options, spans and metrics go to OpenTelemetry's global providers. examples/prometheus is a
// whole program.
func ExampleNew() {
	observer, err := telemetry.New(telemetry.Options{})
	if err != nil {
		panic(err)
	}
	srv, err := server.New(server.Options{Observers: []server.Observer{observer}})
	if err != nil {
		panic(err)
	}
	_ = srv
}
