package memory

import (
	"context"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// contenders lists our rules, then the peers. The ratios are those of the first.
var contenders = append([]contender{
	{"FixedWindow", ours(func(q quota) ratelimit.Rule { return ratelimit.FixedWindow(int64(q.limit), q.per) })},
	{"GCRA", ours(func(q quota) ratelimit.Rule { return ratelimit.GCRA(int64(q.limit), q.per) })},
	{"PerMinute", ours(func(q quota) ratelimit.Rule { return ratelimit.PerMinute(int64(q.limit)) })},
}, peers...)

// ours returns a function that opens a limiter with a rule on a store in memory.
func ours(rule func(quota) ratelimit.Rule) func(quota, int) (limiter, error) {
	return func(q quota, maxKeys int) (limiter, error) {
		s, err := memstore.New(memstore.Options{MaxKeys: maxKeys, MaxBytes: 8 << 30})
		if err != nil {
			return limiter{}, err
		}
		l, err := ratelimit.NewLimiter(s, rule(q))
		if err != nil {
			return limiter{}, err
		}
		ctx := context.Background()
		return limiter{close: func() {}, take: func(key string) (bool, error) {
			res, err := l.Take(ctx, key, 1)
			return res.Allowed, err
		}}, nil
	}
}
