package testhost

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/testenv"
)

// Redis is a redis-server for one test.
type Redis struct {
	*RedisProcess
	tb testing.TB
}

// StartRedis starts a redis-server for the test. If it is not installed, the test is skipped, or fails with
// CI=true. args are those of [RunRedis]; [Durable] keeps its data for a Restart.
func StartRedis(tb testing.TB, args ...string) *Redis {
	tb.Helper()
	testenv.LookPath(tb, "redis-server")
	p, err := RunRedis(tb.TempDir(), args...)
	return newRedis(tb, p, err)
}

// newRedis returns the Redis of p, which ends with the test.
func newRedis(tb testing.TB, p *RedisProcess, err error) *Redis {
	tb.Helper()
	if err != nil {
		tb.Fatalf("testhost: %v", err)
	}
	tb.Cleanup(p.Close)
	return &Redis{p, tb}
}

// Client returns a client that is closed with the test. change may change its options; it may be nil.
func (s *Redis) Client(change func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	s.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Restart starts the server again, at the same address, with the data that it kept on disk: none if it
// is not durable.
func (s *Redis) Restart() {
	s.tb.Helper()
	if err := s.RedisProcess.Restart(); err != nil {
		s.tb.Fatalf("testhost: restart: %v", err)
	}
}

// RestartEmpty is Restart without the data.
func (s *Redis) RestartEmpty() {
	s.tb.Helper()
	if err := s.RedisProcess.RestartEmpty(); err != nil {
		s.tb.Fatalf("testhost: restart: %v", err)
	}
}

// Calls returns how often a command was called since the server started, and the
// microseconds that a call took on average: a line of INFO commandstats.
func (s *Redis) Calls(command string) (calls int, usecPerCall float64) {
	s.tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
	defer c.Close()
	info, err := c.Info(context.Background(), "commandstats").Result()
	if err != nil {
		s.tb.Fatalf("testhost: %v", err)
	}
	for line := range strings.Lines(info) {
		fields, ok := strings.CutPrefix(strings.TrimSpace(line), "cmdstat_"+strings.ToLower(command)+":")
		if !ok {
			continue
		}
		for field := range strings.SplitSeq(fields, ",") {
			switch name, value, _ := strings.Cut(field, "="); name {
			case "calls":
				calls, _ = strconv.Atoi(value)
			case "usec_per_call":
				usecPerCall, _ = strconv.ParseFloat(value, 64)
			}
		}
	}
	return calls, usecPerCall
}
