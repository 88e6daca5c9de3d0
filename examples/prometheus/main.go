// Prometheus is a server with metrics for Prometheus, which show what requests resolved and what the rate
// limit decided. The metrics have an address of their own.
//
//	go run .                                         (in this folder)
//	REDIS_URL=redis://127.0.0.1:6379 go run .
//
//	curl -c jar http://127.0.0.1:8080/users/ada
//	curl -b jar -H 'X-Api-Key: any' http://127.0.0.1:8080/profile
//	curl http://127.0.0.1:9464/metrics
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/telemetry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "prometheus:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then waits for the requests in progress.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("prometheus", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	metricsAddr := flags.String("metrics", "127.0.0.1:9464", "`host:port` of /metrics, which clients should not reach")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	meters, registry, err := newMeterProvider()
	if err != nil {
		return err
	}
	defer func() { _ = meters.Shutdown(context.WithoutCancel(ctx)) }()
	st, err := openStores(os.Getenv("REDIS_URL"), meters)
	if err != nil {
		return err
	}
	defer func() { _ = st.close() }()
	srv, err := newServer(st, meters)
	if err != nil {
		return err
	}
	page := &http.Server{Handler: metricsHandler(registry), ReadHeaderTimeout: 10 * time.Second}
	app, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	metrics, err := net.Listen("tcp", *metricsAddr)
	if err != nil {
		return errors.Join(err, app.Close())
	}
	fmt.Fprintf(out, "Listening on http://%s, metrics on http://%s/metrics\n", app.Addr(), metrics.Addr())

	served := make(chan error, 2)
	go func() { served <- srv.Serve(app) }()
	go func() { served <- page.Serve(metrics) }()
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, srv.Shutdown(ctx), page.Shutdown(ctx))
}

// newMeterProvider returns a MeterProvider of the OpenTelemetry SDK, and the Prometheus registry to which it exports.
func newMeterProvider() (*sdkmetric.MeterProvider, *prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)), registry, nil
}

func metricsHandler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	return mux
}

// newObserver returns an observer that measures properties and limits, and a middleware (otelhttp) that measures
// requests. The server's name includes a port. Otherwise, otelhttp would use the Host header, which clients can set
// to any value.
func newObserver(meters *sdkmetric.MeterProvider) (server.Observer, func(http.Handler) http.Handler, error) {
	observer, err := telemetry.New(telemetry.Options{MeterProvider: meters})
	if err != nil {
		return nil, nil, err
	}
	return observer, otelhttp.NewMiddleware("server", otelhttp.WithMeterProvider(meters), otelhttp.WithServerName("app:80")), nil
}
