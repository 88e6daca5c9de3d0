package rig

import (
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// WithRedis calls run with the address of a Redis that starts empty, and with a client of
// it. Both end with run.
func WithRedis(run func(addr string, client *redis.Client) error) error {
	dir, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := testhost.RunRedis(dir)
	if err != nil {
		return err
	}
	defer server.Close()
	client := NewClient(server.Addr, 0)
	defer client.Close()
	return run(server.Addr, client)
}

// NewClient returns a client of at most so many connections; 0 is go-redis' own number.
func NewClient(addr string, connections int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, PoolSize: connections})
}
