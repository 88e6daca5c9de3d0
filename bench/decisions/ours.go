package decisions

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// stack makes a store over client, and what ends it, if anything does.
type stack func(client *redis.Client) (ratelimit.Store, func() error, error)

// defaultStore returns redisstore with its default options.
func defaultStore(client *redis.Client) (ratelimit.Store, func() error, error) {
	s, err := redisstore.New(client, redisstore.Options{Timeout: 5 * time.Second}) // the machine may be busy
	return s, nil, err
}

// unbatchedStore returns a store that makes a script call for each key.
func unbatchedStore(client *redis.Client) (ratelimit.Store, func() error, error) {
	s, err := redisstore.New(client, redisstore.Options{BatchSize: 1, Timeout: 5 * time.Second})
	return s, nil, err
}

func prepaidStore(client *redis.Client) (ratelimit.Store, func() error, error) {
	inner, _, err := defaultStore(client)
	if err != nil {
		return nil, nil, err
	}
	l, err := layer.New(inner, layer.Options{Prepaid: &layer.PrepaidOptions{}})
	if err != nil {
		return nil, nil, err
	}
	return l, l.Close, nil
}

// windowRule returns a rule such as most of the peers have.
func windowRule(q quota) ratelimit.Rule {
	return ratelimit.FixedWindow(int64(q.limit), q.per)
}

// gcraRule returns a rule such as redis_rate and throttled have.
func gcraRule(q quota) ratelimit.Rule {
	return ratelimit.GCRA(int64(q.limit), q.per)
}

// ourContender returns a contender that calls a stack.
func ourContender(name string, rule func(quota) ratelimit.Rule, make stack) contender {
	return contender{name: name, sends: scripts, open: func(addr string, q quota) (limiter, error) {
		client := newClient(addr)
		s, end, err := make(client)
		if err != nil {
			return limiter{}, errors.Join(err, client.Close())
		}
		l, err := ratelimit.NewLimiter(s, rule(q))
		if err != nil {
			return limiter{}, errors.Join(err, client.Close())
		}
		return limiter{
			take: func(ctx context.Context, key string) (bool, error) {
				res, err := l.Take(ctx, key, 1)
				return res.Allowed, err
			},
			close: func() error {
				if end == nil {
					return client.Close()
				}
				return errors.Join(end(), client.Close())
			},
		}, nil
	}}
}
