package denycache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/rig"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// every is how many calls go by for each whose latency is measured, on Node, too. A clock that is
// read twice costs as much as what is measured.
const every = 61

// ours is a stack of ours, in this process.
type ours struct {
	limiter *ratelimit.Limiter
	store   *counted
	client  *redis.Client
	server  *httptest.Server
}

// counted counts the calls of a store.
type counted struct {
	*redisstore.Store
	calls atomic.Int64
}

// Do implements [ratelimit.Store].
func (c *counted) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	c.calls.Add(1)
	return c.Store.Do(ctx, ops)
}

// DoOne is Do with a list of one.
func (c *counted) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	c.calls.Add(1)
	return c.Store.DoOne(ctx, op)
}

func withoutLayers(s ratelimit.Store) (ratelimit.Store, error) { return s, nil }

func withDenyCache(s ratelimit.Store) (ratelimit.Store, error) {
	return layer.New(s, layer.Options{DenyCache: &layer.DenyCacheOptions{}})
}

// newOurs returns what makes a subject, with layers around the store.
func newOurs(around func(ratelimit.Store) (ratelimit.Store, error)) func(context.Context, string, *redis.Client) (subject, error) {
	return func(_ context.Context, addr string, _ *redis.Client) (subject, error) {
		rule := ratelimit.FixedWindow(limit, per)
		client := rig.NewClient(addr, 0)
		bottom, err := redisstore.New(client, redisstore.Options{Timeout: 5 * time.Second}) // the machine may be busy
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		store := &counted{Store: bottom}
		top, err := around(store)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		limiter, err := ratelimit.NewLimiter(top, rule)
		return &ours{limiter: limiter, store: store, client: client}, err
	}
}

func keyNames(round string) (keys [subjects]string) {
	for i := range keys {
		keys[i] = fmt.Sprint(round, ":", i)
	}
	return keys
}

func (o *ours) run(ctx context.Context, round string, length time.Duration) (sample, error) {
	keys := keyNames(round)
	sum := sample{admitted: make([]int, subjects)}
	var mu sync.Mutex
	var callers sync.WaitGroup
	var failed error
	began := time.Now()
	for range inFlight {
		callers.Go(func() {
			s, err := o.runCaller(ctx, &keys, began.Add(length))
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			sum.add(s)
		})
	}
	callers.Wait()
	sum.seconds = time.Since(began).Seconds()
	return sum, failed
}

func (s *sample) add(o sample) {
	s.ops += o.ops
	s.latencies = append(s.latencies, o.latencies...)
	for i, n := range o.admitted {
		s.admitted[i] += n
	}
}

// runCaller takes one unit after the other. It looks at the clock only when it takes the
// latency, as flexible.js does, and then lets the others have their turn, as each await
// does on Node: fifty goroutines that never wait keep the one that reads from Redis from
// its processor.
func (o *ours) runCaller(ctx context.Context, keys *[subjects]string, end time.Time) (sample, error) {
	s := sample{admitted: make([]int, subjects)}
	var began time.Time
	for n := 0; ; n++ {
		timed := n%every == 0
		if timed {
			if began = time.Now(); began.After(end) {
				return s, nil
			}
		}
		i := rand.IntN(subjects)
		res, err := o.limiter.Take(ctx, keys[i], 1)
		if err != nil {
			return s, err
		}
		if timed {
			s.latencies = append(s.latencies, micros(time.Since(began)))
			runtime.Gosched()
		}
		if res.Allowed {
			s.admitted[i]++
		}
		s.ops++
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (o *ours) startServer(context.Context) (string, error) {
	if o.server == nil {
		o.server = httptest.NewServer(http.HandlerFunc(o.handleTake))
	}
	return o.server.URL, nil
}

// handleTake answers a request as flexible.js does.
func (o *ours) handleTake(w http.ResponseWriter, r *http.Request) {
	key := fmt.Sprint(r.URL.Path[1:], ":", rand.IntN(subjects))
	switch res, err := o.limiter.Take(r.Context(), key, 1); {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case res.Allowed:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}") // hey counts what it gets
	default:
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "Too Many Requests")
	}
}

func (o *ours) storeCalls(context.Context) (int, error) { return int(o.store.calls.Load()), nil }

func (o *ours) cpu() (time.Duration, error) { return rig.ProcessorTime(), nil }

func (o *ours) Close() error {
	if o.server != nil {
		o.server.Close()
	}
	return o.client.Close()
}
