package main

import (
	"context"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/lazyreq/lazyreq/ratelimit/layer"
	limitstore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/session"
)

// stores holds the stores of sessions and counters. A nil store means memory.
type stores struct {
	sessions session.Store
	limits   ratelimit.Store
	close    func() error
}

// openStores returns stores in the Redis at url, whose calls are measured. If url is empty, the stores are in memory.
func openStores(url string, meters metric.MeterProvider) (*stores, error) {
	if url == "" {
		return &stores{close: func() error { return nil }}, nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true // redisotel measures commands only with this option
	client := redis.NewClient(o)
	st := &stores{close: client.Close}
	if err := st.open(client, meters); err != nil {
		_ = client.Close()
		return nil, err
	}
	return st, nil
}

func (st *stores) open(client *redis.Client, meters metric.MeterProvider) error {
	err := redisotel.InstrumentMetrics(client, redisotel.WithMeterProvider(meters))
	if err != nil {
		return err
	}
	if st.sessions, err = sessionstore.New(client, sessionstore.Options{}); err != nil {
		return err
	}
	counters, err := limitstore.New(client, limitstore.Options{})
	if err != nil {
		return err
	}
	// While Redis is down, each process has its own counters.
	guarded, err := layer.New(counters, layer.Options{Failover: &layer.FailoverOptions{Mode: layer.Local}})
	if err != nil {
		return err
	}
	st.limits = guarded
	return observeFailover(meters, guarded)
}

// observeFailover adds a metric that shows whether the store of counters is in use. Each scrape reads the state.
func observeFailover(meters metric.MeterProvider, store *layer.Store) error {
	_, err := meters.Meter("example").Int64ObservableGauge("ratelimit.backend.down",
		metric.WithDescription("1 while the circuit breaker of the store of rate limits is open."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			down := int64(0)
			if store.Stats().Down {
				down = 1
			}
			o.Observe(down)
			return nil
		}))
	return err
}
