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

// Stack makes a store over client, and what ends it, if anything does.
type Stack func(client *redis.Client) (ratelimit.Store, func() error, error)

// DefaultStore returns redisstore with its default options.
func DefaultStore(client *redis.Client) (ratelimit.Store, func() error, error) {
	s, err := redisstore.New(client, redisstore.Options{Timeout: 5 * time.Second}) // the machine may be busy
	return s, nil, err
}

// unbatchedStore returns a store that makes a script call for each key.
func unbatchedStore(client *redis.Client) (ratelimit.Store, func() error, error) {
	s, err := redisstore.New(client, redisstore.Options{BatchSize: 1, Timeout: 5 * time.Second})
	return s, nil, err
}

// PrepaidStore returns a store that takes units in advance.
func PrepaidStore(client *redis.Client) (ratelimit.Store, func() error, error) {
	inner, _, err := DefaultStore(client)
	if err != nil {
		return nil, nil, err
	}
	l, err := layer.New(inner, layer.Options{Prepaid: &layer.PrepaidOptions{}})
	if err != nil {
		return nil, nil, err
	}
	return l, l.Close, nil
}

// A RuleFunc is a constructor of rules, such as [ratelimit.Per].
type RuleFunc func(limit int64, per time.Duration) ratelimit.Rule

// Ours returns a contender that calls a stack.
func Ours(name string, rule RuleFunc, make Stack) Contender {
	return Contender{Name: name, sends: scripts, Open: func(addr string) (Client, error) {
		client := newClient(addr)
		s, end, err := make(client)
		if err != nil {
			return Client{}, errors.Join(err, client.Close())
		}
		closer := client.Close
		if end != nil {
			closer = func() error { return errors.Join(end(), client.Close()) }
		}
		return Client{Close: closer, Limiter: func(q Quota) (Take, error) {
			l, err := ratelimit.NewLimiter(s, rule(int64(q.Limit), q.Per))
			return func(ctx context.Context, key string, n int) (Decision, error) {
				res, err := l.Take(ctx, key, int64(n))
				return Decision{res.Allowed, int(res.Remaining)}, err
			}, err
		}}, nil
	}}
}
