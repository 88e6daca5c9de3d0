package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// stores keep the counters, over all reloads.
type stores struct {
	log *slog.Logger

	mu      sync.Mutex
	memory  ratelimit.Store
	bounds  Memory // of memory
	url     string // of client
	client  *redis.Client
	retired []*redis.Client // of earlier configurations
}

// store returns the store of a generation.
func (s *stores) store(c *Config, g *generation) (ratelimit.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Redis == "" {
		return s.inMemory(c.Memory)
	}
	return s.inRedis(c.Redis)
}

func (s *stores) inMemory(m Memory) (ratelimit.Store, error) {
	if s.memory != nil && s.bounds == m {
		return s.memory, nil
	}
	made, err := ratelimit.NewMemory(ratelimit.MemoryOptions{MaxBytes: m.MaxBytes})
	if err != nil {
		return nil, fmt.Errorf("memory.max_bytes: %w", err)
	}
	s.memory, s.bounds = made, m
	return made, nil
}

func (s *stores) inRedis(url string) (ratelimit.Store, error) {
	if s.client == nil || s.url != url {
		o, err := redis.ParseURL(url)
		if err != nil {
			return nil, err
		}
		if s.client != nil {
			s.retired = append(s.retired, s.client)
		}
		s.client, s.url = redis.NewClient(o), url
	}
	return redisstore.New(s.client, redisstore.Options{})
}

func (s *stores) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	for _, c := range s.retired {
		errs = append(errs, c.Close())
	}
	s.client, s.retired = nil, nil
	return errors.Join(errs...)
}
