package decisions

import (
	"context"
	"net/http"
	"strconv"

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

// Peers are the contenders of others.
var Peers = []Contender{
	{Name: "redis_rate", Open: openRedisRate, sends: scripts},
	{Name: "rueidislimiter", Open: openRueidis, sends: scripts},
	{Name: "ulule", Open: openUlule, sends: scripts},
	{Name: "go-redisstore", Open: openGoRedisstore, sends: scripts, OneUnit: true},
	// Each TIME goes with a GET.
	{Name: "throttled", Open: openThrottled, sends: []string{"time", "time", "eval", "setnx", "expire"}},
	{Name: "httprate-redis", Open: openHttprate, sends: []string{"mget", "multi", "incrby", "expire", "exec"}},
}

func openRedisRate(addr string) (Client, error) {
	client := newClient(addr)
	l := redis_rate.NewLimiter(client)
	return Client{Close: client.Close, Limiter: func(q Quota) (Take, error) {
		limit := redis_rate.Limit{Rate: q.Limit, Burst: q.Limit, Period: q.Per}
		return func(ctx context.Context, key string, n int) (Decision, error) {
			res, err := l.AllowN(ctx, key, limit, n)
			if err != nil {
				return Decision{}, err
			}
			return Decision{res.Allowed > 0, res.Remaining}, nil
		}, nil
	}}, nil
}

func openRueidis(addr string) (Client, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return Client{}, err
	}
	closer := func() error { client.Close(); return nil }
	return Client{Close: closer, Limiter: func(q Quota) (Take, error) {
		l, err := rueidislimiter.NewRateLimiter(rueidislimiter.RateLimiterOption{
			ClientBuilder: func(rueidis.ClientOption) (rueidis.Client, error) { return client, nil },
			Limit:         q.Limit, Window: q.Per,
		})
		return func(ctx context.Context, key string, n int) (Decision, error) {
			res, err := l.AllowN(ctx, key, int64(n))
			return Decision{res.Allowed, int(res.Remaining)}, err
		}, err
	}}, nil
}

func openUlule(addr string) (Client, error) {
	client := newClient(addr)
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return Client{}, err
	}
	return Client{Close: client.Close, Limiter: func(q Quota) (Take, error) {
		l := ulule.New(store, ulule.Rate{Limit: int64(q.Limit), Period: q.Per})
		return func(ctx context.Context, key string, n int) (Decision, error) {
			res, err := l.Increment(ctx, key, int64(n))
			return Decision{err == nil && !res.Reached, int(res.Remaining)}, err
		}, nil
	}}, nil
}

// openGoRedisstore doesn't use its own pool, which keeps no connection.
func openGoRedisstore(addr string) (Client, error) {
	pool := &redis.Pool{MaxIdle: poolSize, MaxActive: poolSize, Wait: true, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", addr)
	}}
	return Client{Close: pool.Close, Limiter: func(q Quota) (Take, error) {
		store, err := redisstore.NewWithPool(&redisstore.Config{Tokens: uint64(q.Limit), Interval: q.Per}, pool)
		return func(ctx context.Context, key string, _ int) (Decision, error) {
			_, remaining, _, ok, err := store.Take(ctx, key)
			return Decision{ok, int(remaining)}, err
		}, err
	}}, nil
}

func openThrottled(addr string) (Client, error) {
	client := newClient(addr)
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return Client{}, err
	}
	return Client{Close: client.Close, Limiter: func(q Quota) (Take, error) {
		rate := throttled.RateQuota{MaxRate: throttled.PerDuration(q.Limit, q.Per), MaxBurst: q.Limit - 1}
		l, err := throttled.NewGCRARateLimiterCtx(store, rate)
		return func(ctx context.Context, key string, n int) (Decision, error) {
			limited, res, err := l.RateLimitCtx(ctx, key, n)
			return Decision{err == nil && !limited, res.Remaining}, err
		}, err
	}}, nil
}

func openHttprate(addr string) (Client, error) {
	client := newClient(addr)
	return Client{Close: client.Close, Limiter: func(q Quota) (Take, error) {
		counter := httprateredis.WithRedisLimitCounter(&httprateredis.Config{Client: client, WindowLength: q.Per, FallbackDisabled: true})
		l := httprate.NewRateLimiter(q.Limit, q.Per, counter, httprate.WithErrorHandler(recordError))
		return func(ctx context.Context, key string, n int) (Decision, error) {
			w := &answer{header: http.Header{}}
			if n != 1 {
				ctx = httprate.WithIncrement(ctx, n)
			}
			limited := l.OnLimit(w, (&http.Request{}).WithContext(ctx), key)
			if w.err != nil {
				return Decision{}, w.err
			}
			remaining, err := strconv.Atoi(w.header.Get("X-RateLimit-Remaining"))
			return Decision{!limited, remaining}, err
		}, nil
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
