package testhost

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is one server of a Cluster.
type node struct {
	*Redis
	id   string
	dead bool
}

// view returns the lines of CLUSTER NODES that contain a word. Each line is about one known node.
func (n *node) view(ctx context.Context, word string) (lines []string) {
	text, _ := n.admin.ClusterNodes(ctx).Result()
	for line := range strings.Lines(text) {
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' })
		if slices.Contains(words, word) {
			lines = append(lines, line)
		}
	}
	return lines
}

// ready reports whether the node is a master that serves, or a replica that is in sync with its master.
func (n *node) ready(ctx context.Context) bool {
	state, _ := n.admin.ClusterInfo(ctx).Result()
	if !strings.Contains(state, "cluster_state:ok") {
		return false
	}
	r := n.role()
	return r.master || r.following
}

// ownerOf returns the id of the master that, according to this node, has the slot. It returns "" if no node has it.
func (n *node) ownerOf(ctx context.Context, slot int) (id string) {
	//lint:ignore SA1019 Redis 6.2 has no CLUSTER SHARDS
	ranges, _ := n.admin.ClusterSlots(ctx).Result()
	for _, r := range ranges {
		if r.Start <= slot && slot <= r.End && len(r.Nodes) > 0 {
			return r.Nodes[0].ID
		}
	}
	return ""
}

// StartNode starts a Cluster of one node, and returns a plain client and a Cluster client of it. The node refuses calls
// with keys of several slots.
func StartNode(tb testing.TB) (server *Redis, plain *redis.Client, cluster *redis.ClusterClient) {
	tb.Helper()
	server = StartRedis(tb, "--cluster-enabled", "yes")
	plain = server.Client(nil)
	must(tb, plain.ClusterAddSlotsRange(tb.Context(), 0, 16383).Err())
	waitFor(tb, "the node has all slots", func() bool {
		return plain.Set(tb.Context(), "up", 1, time.Minute).Err() == nil
	})
	cluster = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}, Protocol: 2, DisableIdentity: true})
	tb.Cleanup(func() { _ = cluster.Close() })
	return server, plain, cluster
}
