package faults

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/sethvargo/go-limiter/memorystore"
	"golang.org/x/time/rate"

	"github.com/lazyreq/lazyreq/bench/decisions"
	"github.com/lazyreq/lazyreq/ratelimit"
)

var (
	lazyreq = []decisions.Contender{
		decisions.Ours(ours+"Per", ratelimit.Per, decisions.DefaultStore),
		decisions.Ours(ours+"SlidingLog", ratelimit.SlidingLog, decisions.DefaultStore),
		decisions.Ours(ours+"FixedWindow", ratelimit.FixedWindow, decisions.DefaultStore),
		decisions.Ours(ours+"GCRA", ratelimit.GCRA, decisions.DefaultStore),
		decisions.Ours(ours+"Prepaid", ratelimit.FixedWindow, decisions.PrepaidStore),
	}
	inMemory = []decisions.Contender{
		{Name: "go-limiter", Open: openInMemory(newGoLimiter), OneUnit: true},
		{Name: "x/time", Open: openInMemory(newRate)},
		{Name: "tollbooth", Open: openInMemory(newTollbooth), OneUnit: true},
	}

	onRedis      = slices.Concat(lazyreq, decisions.Peers)
	all          = slices.Concat(onRedis, inMemory)
	severalUnits = slices.DeleteFunc(slices.Clone(all), func(c decisions.Contender) bool { return c.OneUnit })
)

func openInMemory(limiter func(decisions.Quota) (decisions.Take, error)) func(string) (decisions.Client, error) {
	return func(string) (decisions.Client, error) {
		return decisions.Client{Limiter: limiter, Close: func() error { return nil }}, nil
	}
}

func newGoLimiter(q decisions.Quota) (decisions.Take, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(q.Limit), Interval: q.Per, DisablePurge: true})
	return func(ctx context.Context, key string, _ int) (decisions.Decision, error) {
		_, remaining, _, ok, err := store.Take(ctx, key)
		return decisions.Decision{Allowed: ok, Remaining: int(remaining)}, err
	}, err
}

// newRate keeps a limiter for each key in a map.
func newRate(q decisions.Quota) (decisions.Take, error) {
	var limiters sync.Map
	return func(_ context.Context, key string, n int) (decisions.Decision, error) {
		v, _ := limiters.LoadOrStore(key, rate.NewLimiter(rate.Limit(float64(q.Limit)/q.Per.Seconds()), q.Limit))
		l := v.(*rate.Limiter)
		ok := l.AllowN(time.Now(), n)
		return decisions.Decision{Allowed: ok, Remaining: int(l.Tokens())}, nil
	}, nil
}

func newTollbooth(q decisions.Quota) (decisions.Take, error) {
	l := tollbooth.NewLimiter(float64(q.Limit)/q.Per.Seconds(), nil).SetBurst(q.Limit)
	return func(_ context.Context, key string, _ int) (decisions.Decision, error) {
		denial, remaining := tollbooth.LimitByKeysAndReturn(l, []string{key})
		return decisions.Decision{Allowed: denial == nil, Remaining: remaining}, nil
	}, nil
}
