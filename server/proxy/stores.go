package proxy

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
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

	users int // configurations, and stores.current; under stores.mu

	mu     sync.Mutex
	chains map[string]*chain // by on_error
}

// chain is what answers for the rules of one on_error.
type chain struct {
	cache    *layer.DenyCache
	failover *layer.Failover
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
		made.base, err = ratelimit.NewMemory(ratelimit.MemoryOptions{
			MaxBytes: size, MaxSubjects: int(size / leastCounter), Clock: s.now,
		})
		return made, err
	}
	o, err := redis.ParseURL(c.Redis)
	if err != nil {
		return nil, fmt.Errorf("is no URL of a Redis, want one such as redis://127.0.0.1:6379/0: %w", withoutURL(err))
	}
	made.client = redis.NewClient(o)
	made.base, err = redisstore.New(made.client, redisstore.Options{Timeout: max(made.timeout, 250*time.Millisecond)})
	return made, err
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
	var c chain
	var err error
	c.failover, err = layer.NewFailover(s.base, layer.FailoverOptions{
		Mode: modes[onError], Replicas: s.replicas, Timeout: s.timeout, Logger: s.log,
	})
	if err != nil {
		return nil, err
	}
	if c.cache, err = layer.NewDenyCache(c.failover, layer.DenyCacheOptions{}); err != nil {
		return nil, err
	}
	s.chains[onError] = &c
	return &c, nil
}

// down tells whether Redis was given up.
func (s *stores) down() bool {
	s.mu.Lock()
	current := s.current
	s.mu.Unlock()
	if current == nil {
		return false
	}
	current.mu.Lock()
	defer current.mu.Unlock()
	for _, c := range current.chains {
		if c.failover.Stats().Down {
			return true
		}
	}
	return false
}
