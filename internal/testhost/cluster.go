package testhost

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/testenv"
)

const (
	masters = 3
	slots   = 16384
	// nodeTimeout is how long a node may be silent before the Cluster considers it dead. It allows for slow nodes on a
	// busy machine.
	nodeTimeout = 1500 * time.Millisecond
)

// Cluster is a Redis Cluster for one test: three masters with a replica each. Its methods fail the test on an error.
// Only the test's goroutine may call them.
type Cluster struct {
	tb    testing.TB
	nodes []*node // at the start, three masters and then their replicas
}

// StartCluster starts a Cluster for the test and waits until it is complete. args are arguments of each server. The test
// is skipped under the same condition as in [StartRedis].
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	testenv.LookPath(tb, "redis-server")
	args = append([]string{
		"--cluster-enabled", "yes",
		"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
		"--cluster-replica-validity-factor", "0", // a replica may always take over
		"--repl-diskless-sync-delay", "0",
	}, args...)
	procs, errs := make([]*RedisProcess, 2*masters), make([]error, 2*masters)
	var wg sync.WaitGroup
	for i := range procs {
		dir := tb.TempDir()
		wg.Go(func() { procs[i], errs[i] = RunRedis(dir, args...) })
	}
	wg.Wait()
	for _, p := range procs {
		if p != nil { // even if another one did not start
			tb.Cleanup(p.Close)
		}
	}
	c := &Cluster{tb: tb}
	for i, p := range procs {
		n := &node{Redis: newRedis(tb, p, errs[i])}
		n.id = n.admin.ClusterMyID(context.Background()).Val()
		c.nodes = append(c.nodes, n)
	}
	c.join()
	return c
}

// join joins the nodes to one Cluster.
func (c *Cluster) join() {
	c.tb.Helper()
	ctx := context.Background()
	for i, n := range c.nodes {
		// With different epochs from the start, the nodes need not vote.
		must(c.tb, n.admin.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		if i < masters {
			must(c.tb, n.admin.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err())
		}
		for _, other := range c.nodes[:i] { // each node meets all others, which is faster than gossip
			host, port := other.hostPort()
			must(c.tb, n.admin.ClusterMeet(ctx, host, port).Err())
		}
	}
	c.wait("the nodes know one another", func(n *node) bool {
		return len(n.view(ctx, "connected")) == len(c.nodes)
	})
	for i, n := range c.nodes[masters:] {
		must(c.tb, n.admin.ClusterReplicate(ctx, c.nodes[i].id).Err())
	}
	c.wait("replicas follow their masters", func(n *node) bool {
		return n.ready(ctx) && len(n.view(ctx, "slave")) == len(c.nodes)-masters
	})
}

// Client returns a client of the Cluster that is closed with the test. change may change its options; it may be nil.
func (c *Cluster) Client(change func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{Protocol: 2, DisableIdentity: true}
	for _, n := range c.nodes {
		o.Addrs = append(o.Addrs, n.Addr)
	}
	if change != nil {
		change(o)
	}
	client := redis.NewClusterClient(o)
	c.tb.Cleanup(func() { _ = client.Close() })
	return client
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	slot, err := c.liveNodes()[0].admin.ClusterKeySlot(context.Background(), key).Result()
	must(c.tb, err)
	return int(slot)
}

// Masters returns the current masters, beginning with the owner of the slot.
func (c *Cluster) Masters(slot int) []*Redis {
	c.tb.Helper()
	owner := c.owner(slot)
	servers := []*Redis{owner.Redis}
	for _, n := range c.liveNodes() {
		if n != owner && n.role().master {
			servers = append(servers, n.Redis)
		}
	}
	return servers
}

// WaitReplicated waits until the replica of a slot's master has all earlier writes.
func (c *Cluster) WaitReplicated(slot int) {
	c.tb.Helper()
	owner := c.owner(slot)
	_, port := owner.hostPort()
	for _, n := range c.liveNodes() {
		if n.role().follows == port {
			waitCaughtUp(c.tb, owner.Redis, n.Redis)
			return
		}
	}
	c.tb.Fatalf("testhost: the master of slot %d has no replica", slot)
}

// KillMaster kills the master of a slot, waits until its replica has taken over, and returns it.
func (c *Cluster) KillMaster(slot int) *Redis {
	c.tb.Helper()
	old := c.owner(slot)
	old.Kill()
	old.dead = true
	c.wait("a replica takes over", func(n *node) bool {
		owner := n.ownerOf(context.Background(), slot)
		return owner != "" && owner != old.id && n.ready(context.Background())
	})
	return c.owner(slot).Redis
}

// Restart restarts the masters that KillMaster killed, and waits until no node considers another node dead. After
// that, replicas do not take over.
func (c *Cluster) Restart() {
	c.tb.Helper()
	for _, n := range c.nodes {
		if n.dead {
			n.Redis.Restart()
			n.dead = false
		}
	}
	c.wait("every node is ready", func(n *node) bool {
		ctx := context.Background()
		return n.ready(ctx) && len(n.view(ctx, "fail"))+len(n.view(ctx, "fail?")) == 0
	})
}

// Stop kills all nodes.
func (c *Cluster) Stop() {
	for _, n := range c.nodes {
		n.Kill()
		n.dead = true
	}
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
