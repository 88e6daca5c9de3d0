package testhost

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// StartNode starts a Cluster of one node, which refuses calls with keys of several slots, and returns a
// plain client and a Cluster client of it.
func StartNode(tb testing.TB) (server *Redis, plain *redis.Client, cluster *redis.ClusterClient) {
	tb.Helper()
	server = StartRedis(tb, "--cluster-enabled", "yes")
	plain = server.Client(nil)
	if err := plain.ClusterAddSlotsRange(tb.Context(), 0, 16383).Err(); err != nil {
		tb.Fatalf("testhost: %v", err)
	}
	waitFor(tb, "the node has all slots", func() bool {
		return plain.Set(tb.Context(), "up", 1, time.Minute).Err() == nil
	})
	cluster = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}, Protocol: 2, DisableIdentity: true})
	tb.Cleanup(func() { _ = cluster.Close() })
	return server, plain, cluster
}

// KeepFlushingScripts flushes all scripts again and again, until the returned function is called.
func KeepFlushingScripts(tb testing.TB, c *redis.Client) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				c.ScriptFlush(tb.Context())
			}
		}
	}()
	return func() { close(stop); <-ended }
}
