package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/session"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"
)

// stores are where sessions and counters live. Nil stores are in memory.
type stores struct {
	sessions session.Store
	counters ratelimit.Store
	close    func() error
}

// openStores connects to the Redis at url, so that several servers share sessions
// and counters; without a url, this process keeps them. A Redis that does not answer
// is no reason not to start: requests that need it are answered 503 until it does.
func openStores(ctx context.Context, url string, out io.Writer) (stores, error) {
	if url == "" {
		return stores{close: func() error { return nil }}, nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return stores{}, fmt.Errorf("REDIS_URL: %w", err)
	}
	client := redis.NewClient(o)
	s := stores{close: client.Close}
	if s.sessions, err = sessionstore.New(client, sessionstore.Options{}); err != nil {
		return stores{}, err
	}
	if s.counters, err = ratestore.New(client, ratestore.Options{}); err != nil {
		return stores{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		fmt.Fprintf(out, "Redis at %s does not answer yet: %v\n", o.Addr, err)
	}
	return s, nil
}
