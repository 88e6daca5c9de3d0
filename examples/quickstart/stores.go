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

// stores holds the stores of sessions and counters. A nil store means memory.
type stores struct {
	sessions session.Store
	counters ratelimit.Store
	close    func() error
}

// openStores returns stores in the Redis at url, which several servers can share. If url is empty, the stores are in
// memory. The program also starts if Redis does not answer. Until it does, requests that need Redis are answered with
// a 503.
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
