package testhost

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// view returns the lines of CLUSTER NODES, one for each known node, that contain a word.
func (n *node) view(ctx context.Context, word string) (lines []string) {
	text, _ := n.admin.ClusterNodes(ctx).Result()
	for line := range strings.Lines(text) {
		if hasWord(line, word) {
			lines = append(lines, line)
		}
	}
	return lines
}

func hasWord(line, word string) bool {
	for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' }) {
		if w == word {
			return true
		}
	}
	return false
}

// ready reports whether the node serves, or is in sync with its master.
func (n *node) ready(ctx context.Context) bool {
	state, _ := n.admin.ClusterInfo(ctx).Result()
	if !strings.Contains(state, "cluster_state:ok") {
		return false
	}
	r := roleOf(n.admin)
	return r.master || r.following
}

// ownerOf returns the id of the slot's master in the view of this node, or "".
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

// owner returns the master of the slot when all nodes agree.
func (c *Cluster) owner(slot int) *node {
	c.tb.Helper()
	id := ""
	c.wait("the nodes agree on a slot", func(n *node) bool {
		if n == c.liveNodes()[0] {
			id = n.ownerOf(context.Background(), slot)
		}
		return id != "" && n.ownerOf(context.Background(), slot) == id
	})
	for _, n := range c.liveNodes() {
		if n.id == id {
			return n
		}
	}
	c.tb.Fatalf("testhost: a dead node has slot %d", slot)
	return nil
}

func (c *Cluster) liveNodes() (nodes []*node) {
	for _, n := range c.nodes {
		if !n.dead {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// wait returns when done is true for every live node, in one pass over them.
func (c *Cluster) wait(what string, done func(*node) bool) {
	c.tb.Helper()
	waitFor(c.tb, what, func() bool {
		for _, n := range c.liveNodes() {
			if !done(n) {
				return false
			}
		}
		return true
	})
}

// waitFor fails the test if done does not become true in half a minute, which is much longer than it
// takes.
func waitFor(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			tb.Fatalf("testhost: after 30 s it is not so that %s", what)
		}
	}
}

func (c *Cluster) must(err error) {
	c.tb.Helper()
	if err != nil && err != redis.Nil {
		c.tb.Fatalf("testhost: %v", err)
	}
}

func (s *Redis) hostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(s.Addr)
	return host, port
}
