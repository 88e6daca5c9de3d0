package decisions

import (
	"context"
	"net/http"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"github.com/go-redis/redis_rate/v10"
	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislimiter"
	"github.com/sethvargo/go-redisstore"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

var peers = []contender{
	{name: "redis_rate", open: openRedisRate, sends: scripts},
	{name: "rueidislimiter", open: openRueidis, sends: scripts},
	{name: "ulule", open: openUlule, sends: scripts},
	{name: "go-redisstore", open: openGoRedisstore, sends: scripts},
	// Each TIME goes with a GET.
	{name: "throttled", open: openThrottled, sends: []string{"time", "time", "eval", "setnx", "expire"}},
	{name: "httprate-redis", open: openHttprate, sends: []string{"mget", "multi", "incrby", "expire", "exec"}},
}

func openRedisRate(addr string, q quota) (limiter, error) {
	client := newClient(addr)
	l := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: q.limit, Burst: q.limit, Period: q.per}
	return limiter{close: client.Close, take: func(ctx context.Context, key string) (bool, error) {
		res, err := l.Allow(ctx, key, limit)
		return err == nil && res.Allowed > 0, err
	}}, nil
}

func openRueidis(addr string, q quota) (limiter, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return limiter{}, err
	}
	l, err := rueidislimiter.NewRateLimiter(rueidislimiter.RateLimiterOption{
		ClientBuilder: func(rueidis.ClientOption) (rueidis.Client, error) { return client, nil },
		Limit:         q.limit, Window: q.per,
	})
	if err != nil {
		return limiter{}, err
	}
	closer := func() error { client.Close(); return nil }
	return limiter{close: closer, take: func(ctx context.Context, key string) (bool, error) {
		res, err := l.Allow(ctx, key)
		return res.Allowed, err
	}}, nil
}

func openUlule(addr string, q quota) (limiter, error) {
	client := newClient(addr)
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return limiter{}, err
	}
	l := ulule.New(store, ulule.Rate{Limit: int64(q.limit), Period: q.per})
	return limiter{close: client.Close, take: func(ctx context.Context, key string) (bool, error) {
		res, err := l.Get(ctx, key)
		return err == nil && !res.Reached, err
	}}, nil
}

// openGoRedisstore doesn't use its own pool, which keeps no connection.
func openGoRedisstore(addr string, q quota) (limiter, error) {
	pool := &redis.Pool{MaxIdle: poolSize, MaxActive: poolSize, Wait: true, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", addr)
	}}
	store, err := redisstore.NewWithPool(&redisstore.Config{Tokens: uint64(q.limit), Interval: q.per}, pool)
	if err != nil {
		return limiter{}, err
	}
	return limiter{close: pool.Close, take: func(ctx context.Context, key string) (bool, error) {
		_, _, _, ok, err := store.Take(ctx, key)
		return ok, err
	}}, nil
}

func openThrottled(addr string, q quota) (limiter, error) {
	client := newClient(addr)
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return limiter{}, err
	}
	rate := throttled.RateQuota{MaxRate: throttled.PerDuration(q.limit, q.per), MaxBurst: q.limit - 1}
	l, err := throttled.NewGCRARateLimiterCtx(store, rate)
	if err != nil {
		return limiter{}, err
	}
	return limiter{close: client.Close, take: func(ctx context.Context, key string) (bool, error) {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited, err
	}}, nil
}

func openHttprate(addr string, q quota) (limiter, error) {
	client := newClient(addr)
	counter := httprateredis.WithRedisLimitCounter(&httprateredis.Config{Client: client, WindowLength: q.per, FallbackDisabled: true})
	l := httprate.NewRateLimiter(q.limit, q.per, counter, httprate.WithErrorHandler(recordError))
	return limiter{close: client.Close, take: func(ctx context.Context, key string) (bool, error) {
		w := &answer{header: http.Header{}}
		r := (&http.Request{}).WithContext(ctx)
		limited := l.OnLimit(w, r, key)
		return w.err == nil && !limited, w.err
	}}, nil
}

// answer is where httprate writes.
type answer struct {
	header http.Header
	err    error
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }
func (a *answer) WriteHeader(int)             {}

func recordError(w http.ResponseWriter, _ *http.Request, err error) { w.(*answer).err = err }
