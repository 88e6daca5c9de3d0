package memory

import (
	"context"
	"net/http"
	"sync"

	"github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

var peers = []contender{
	{"go-limiter", openGoLimiter},
	{"x/time, sync.Map", openSyncMap},
	{"x/time, RWMutex", openLockedMap},
	{"throttled", openThrottled(false)},
	{"throttled, LRU", openThrottled(true)},
	{"ulule", openUlule},
	{"httprate", openHttprate},
	{"tollbooth", openTollbooth},
}

func openGoLimiter(q quota, _ int) (limiter, error) {
	ctx := context.Background()
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(q.limit), Interval: q.per})
	if err != nil {
		return limiter{}, err
	}
	return limiter{
		take: func(key string) (bool, error) {
			_, _, _, ok, err := store.Take(ctx, key)
			return ok, err
		},
		close: func() { _ = store.Close(ctx) },
	}, nil
}

// newRate returns a token bucket of x/time.
func (q quota) newRate() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(q.limit)/q.per.Seconds()), q.limit)
}

func openSyncMap(q quota, _ int) (limiter, error) {
	var limiters sync.Map
	return limiter{close: func() {}, take: func(key string) (bool, error) {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, q.newRate())
		}
		return l.(*rate.Limiter).Allow(), nil
	}}, nil
}

func openLockedMap(q quota, _ int) (limiter, error) {
	var mu sync.RWMutex
	limiters := map[string]*rate.Limiter{}
	return limiter{close: func() {}, take: func(key string) (bool, error) {
		mu.RLock()
		l := limiters[key]
		mu.RUnlock()
		if l == nil {
			mu.Lock()
			if l = limiters[key]; l == nil {
				l = q.newRate()
				limiters[key] = l
			}
			mu.Unlock()
		}
		return l.Allow(), nil
	}}, nil
}

func openThrottled(bounded bool) func(quota, int) (limiter, error) {
	return func(q quota, maxKeys int) (limiter, error) {
		if !bounded {
			maxKeys = 0
		}
		store, err := throttledstore.NewCtx(maxKeys)
		if err != nil {
			return limiter{}, err
		}
		quota := throttled.RateQuota{MaxRate: throttled.PerDuration(q.limit, q.per), MaxBurst: q.limit - 1}
		l, err := throttled.NewGCRARateLimiterCtx(store, quota)
		if err != nil {
			return limiter{}, err
		}
		ctx := context.Background()
		return limiter{close: func() {}, take: func(key string) (bool, error) {
			limited, _, err := l.RateLimitCtx(ctx, key, 1)
			return err == nil && !limited, err
		}}, nil
	}
}

func openUlule(q quota, _ int) (limiter, error) {
	l := ulule.New(ululestore.NewStore(), ulule.Rate{Limit: int64(q.limit), Period: q.per})
	ctx := context.Background()
	return limiter{close: func() {}, take: func(key string) (bool, error) {
		res, err := l.Get(ctx, key)
		return err == nil && !res.Reached, err
	}}, nil
}

// openHttprate opens a limiter that writes no header fields, which are not a part of the decision.
func openHttprate(q quota, _ int) (limiter, error) {
	l := httprate.NewRateLimiter(q.limit, q.per, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	r := (&http.Request{}).WithContext(context.Background())
	return limiter{close: func() {}, take: func(key string) (bool, error) {
		return !l.OnLimit(nil, r, key), nil
	}}, nil
}

func openTollbooth(q quota, _ int) (limiter, error) {
	l := tollbooth.NewLimiter(float64(q.limit)/q.per.Seconds(), nil).SetBurst(q.limit)
	return limiter{close: func() {}, take: func(key string) (bool, error) {
		return !l.LimitReached(key), nil
	}}, nil
}
