package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// stores keep the counters, over all reloads.
type stores struct {
	log *slog.Logger
	now func() time.Time // nil for the real clock

	mu      sync.Mutex
	current *store // of the newest configuration
}

// leastCounter is less than any counter takes in memory: bytes alone are the bound.
const leastCounter = 32

// store is where counters are, and what is around it that reloads should not lose. It is
// shared by the configurations that mean the same store.
type store struct {
	base     ratelimit.Store
	client   *redis.Client // nil in memory
	url      string
	replicas int
	timeout  time.Duration // of Redis
	memory   Memory
	log      *slog.Logger
	outage   *outage // of Redis

	users int // configurations, and stores.current; under stores.mu

	mu     sync.Mutex
	chains map[string]*chain // by on_error
}

// chain is what answers for the rules of one on_error.
type chain struct {
	onError string
	outage  *outage
	layers  *layer.Store
}

// open returns the store of a configuration, which has to be released.
func (s *stores) open(c *Config) (*store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && s.current.means(c) {
		s.current.users++
		return s.current, nil
	}
	made := &store{url: c.Redis, replicas: max(1, c.Replicas), timeout: c.RedisTimeout, memory: c.Memory, log: s.log, users: 1, chains: map[string]*chain{}}
	var err error
	if c.Redis == "" {
		size := int64(cmp.Or(c.Memory.MaxBytes, 128<<20))
		made.base, err = memstore.New(memstore.Options{
			MaxBytes: size, MaxSubjects: int(size / leastCounter), Clock: s.now,
		})
		return made, err
	}
	o, err := redis.ParseURL(c.Redis)
	if err != nil {
		return nil, fmt.Errorf("is no URL of a Redis, want one such as redis://127.0.0.1:6379/0: %w", withoutURL(err))
	}
	o.DialerRetries = 1 // more of them take longer than a request waits, and hide the cause
	made.client = redis.NewClient(o)
	inner, err := redisstore.New(made.client, redisstore.Options{Timeout: max(made.timeout, 250*time.Millisecond)})
	if err != nil {
		return nil, errors.Join(err, made.client.Close())
	}
	made.outage = &outage{log: s.log, lost: "Redis doesn't answer: on_error says what becomes of requests",
		back: "Redis answers again", affected: "limits were decided about without Redis"}
	made.base = &observed{store: inner, outage: made.outage, timeout: cmp.Or(c.RedisTimeout, 50*time.Millisecond)}
	return made, nil
}

// means tells whether a configuration's counters are in the store.
func (s *store) means(c *Config) bool {
	if s.url == "" {
		return c.Redis == "" && s.memory == c.Memory
	}
	return s.url == c.Redis && s.replicas == max(1, c.Replicas) && s.timeout == c.RedisTimeout
}

// keep makes the store that of the next configurations that mean it. nil is none.
func (s *stores) keep(next *store) error {
	s.mu.Lock()
	had := s.current
	s.current = next
	if next != nil {
		next.users++
	}
	s.mu.Unlock()
	return s.release(had)
}

// release says that one user of the store has gone. After the last, it is closed.
func (s *stores) release(gone *store) error {
	if gone == nil {
		return nil
	}
	s.mu.Lock()
	gone.users--
	last := gone.users == 0
	s.mu.Unlock()
	if last && gone.client != nil {
		gone.outage.close()
		return gone.client.Close()
	}
	return nil
}

var modes = map[string]layer.Mode{open: layer.Open, closed: layer.Closed, local: layer.Local}

// answering returns the chain for an on_error; only Redis needs one.
func (s *store) answering(onError string) (*chain, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chains[onError]; c != nil {
		return c, nil
	}
	layers, err := layer.New(s.base, layer.Options{
		DenyCache: &layer.DenyCacheOptions{},
		Failover: &layer.FailoverOptions{
			Mode: modes[onError], Replicas: s.replicas, Timeout: s.timeout,
			Logger: slog.New(atDebug{s.log.Handler()}), // the outage is logged once for all chains
		},
	})
	if err != nil {
		return nil, err
	}
	c := &chain{onError: onError, outage: s.outage, layers: layers}
	s.chains[onError] = c
	return c, nil
}

// down tells whether the last call of Redis has failed.
func (s *stores) down() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current != nil && s.current.outage != nil && s.current.outage.failing.Load()
}

// observed tells an outage how the calls of a store end.
type observed struct {
	store   *redisstore.Store
	outage  *outage
	timeout time.Duration // of a request's wait
	foreign seldom
}

// Do runs ops as [ratelimit.Store] says.
func (o *observed) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	out, err := o.store.Do(ctx, ops)
	o.observe(ctx, err)
	return out, err
}

// DoOne is Do with a list of one.
func (o *observed) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	out, err := o.store.DoOne(ctx, op)
	o.observe(ctx, err)
	return out, err
}

// observe tells a call that failed from one that was wrong, or whose client has left.
func (o *observed) observe(ctx context.Context, err error) {
	switch {
	case err == nil:
		o.outage.succeed()
	case ctx.Err() == context.Canceled:
	case errors.Is(err, ratelimit.ErrKeyType):
		o.outage.succeed()
		o.foreign.log(o.outage.log, slog.LevelError, "a key in Redis holds something else: on_error says what becomes of its requests",
			slog.String("error", err.Error()))
	case errors.Is(err, context.DeadlineExceeded):
		o.outage.fail(fmt.Errorf("no answer within %v: %w", o.timeout, err))
	case errors.Is(err, ratelimit.ErrStore):
		o.outage.fail(err)
	}
}
