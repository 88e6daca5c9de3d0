package redispipe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// both increments two keys.
var both = NewScript(`return {redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2])}`)

func addBoth(a, b string) Call { return Call{Script: both, Keys: []string{a, b}} }

// TestClusterRun runs the tests that need a real Cluster.
func TestClusterRun(t *testing.T) {
	t.Parallel()
	c := testhost.StartCluster(t)
	client := c.Client(nil)
	p := newPipe(t, client)
	eventually(t, "the Cluster works", func() bool { return run(t.Context(), p, time.Second, "a", 1) == nil })
	for _, test := range []struct {
		name string
		f    func(*testing.T, *testhost.Cluster, *redis.ClusterClient, *Pipe)
	}{
		{"nodes have queues", testNodesHaveQueues},
		{"one node hangs", testOneNodeHangs},
		{"a slot moves", testSlotMigration},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.f(t, c, client, p) }) {
			return
		}
	}
}

// nodeOf returns the address of the node that has a key, according to the client.
func nodeOf(t *testing.T, c *redis.ClusterClient, key string) string {
	t.Helper()
	node, err := c.MasterForKey(t.Context(), key)
	require.NoError(t, err)
	return node.Options().Addr
}

// testNodesHaveQueues makes calls for keys of all nodes in a single RunAll.
func testNodesHaveQueues(t *testing.T, _ *testhost.Cluster, client *redis.ClusterClient, p *Pipe) {
	var calls []Call
	nodes := make(map[string]bool)
	for i := range 60 {
		key := fmt.Sprint("q", i)
		calls = append(calls, add(key, i), of(&counters, key, 1))
		nodes[nodeOf(t, client, key)] = true
	}
	require.Len(t, nodes, 3)
	for i, r := range p.RunAll(t.Context(), long, calls) {
		require.NoError(t, r.Err)
		if i%2 == 1 {
			require.EqualValues(t, 1, r.Common, "an EVALSHA has only one key")
		}
	}
	require.Len(t, p.cluster.queues, 3)
	for i := range 60 {
		require.Equal(t, i+1, value(t, client, fmt.Sprint("q", i)))
	}
}

// allAt returns a ClusterSlots function that gives all slots to the node at addr.
func allAt(addr string) func(context.Context) ([]redis.ClusterSlot, error) {
	return func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
	}
}

// testOneNodeHangs pauses a node. Calls for its keys must fail in time, and calls for other keys must succeed.
func testOneNodeHangs(t *testing.T, c *testhost.Cluster, client *redis.ClusterClient, p *Pipe) {
	hung := nodeOf(t, client, "a")
	var others []string
	for i := 0; len(others) < 40; i++ {
		if key := fmt.Sprint("h", i); nodeOf(t, client, key) != hung {
			others = append(others, key)
		}
	}
	for _, key := range others { // opens the connections
		require.NoError(t, run(t.Context(), p, long, key, 1))
	}
	resume := c.Masters(c.Slot("a"))[0].Pause()
	defer resume()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 4 {
			requireInTime(t, 16, func() error { return run(t.Context(), p, timeout, "a", 1) })
		}
	})
	ends := time.Now().Add(4 * timeout)
	for i := range 8 {
		wg.Go(func() {
			for time.Now().Before(ends) {
				for _, key := range others[5*i:][:5] {
					if err := run(t.Context(), p, time.Second, key, 1); err != nil {
						t.Errorf("%s: %v", key, err)
					}
				}
			}
		})
	}
	wg.Wait()
	resume()
	require.Eventually(t, func() bool { return run(t.Context(), p, timeout, "a", 0) == nil }, time.Second, time.Millisecond)
}

// testSlotMigration runs scripts while a slot is half moved: on a key that has moved, on a key that has not moved, on a new
// key, and on two keys that are on different nodes.
func testSlotMigration(t *testing.T, c *testhost.Cluster, client *redis.ClusterClient, p *Pipe) {
	must := func(calls ...Call) {
		t.Helper()
		for _, r := range p.RunAll(t.Context(), long, calls) {
			require.NoError(t, r.Err)
		}
	}
	must(addBoth("{way}1", "{way}2"))
	slot := c.Slot("{way}")
	to := c.Masters(slot)[1]
	require.NoError(t, to.Client(nil).ScriptFlush(t.Context()).Err(), "the new node must load the scripts")
	m := c.BeginMove(slot, to)
	require.Equal(t, 1, m.MoveKeys(1))
	for i := range 3 {
		key := fmt.Sprint("{way}", i)
		must(add(key, 1))
		must(add(key, 1), add(key, 1), of(&counters, key, 1), of(&counters, key, 1), of(&counters, key, 1))
	}
	apart := make(chan Result, 2)
	go func() { apart <- p.RunAll(t.Context(), long, []Call{addBoth("{way}1", "{way}2")})[0] }()
	go func() { apart <- p.RunAll(t.Context(), long, []Call{addBoth("{way}new 1", "{way}new 2")})[0] }()
	ends := time.Now().Add(300 * time.Millisecond)
	for time.Now().Before(ends) { // other calls do not wait for those two
		must(add("{way}1", 0), add("{way}2", 0), add("a", 0))
	}
	require.Empty(t, apart)
	m.End()
	for range 2 {
		require.NoError(t, receive(t, apart).Err)
	}
	eventually(t, "the client knows the new node", func() bool {
		must(add("a", 0), add("{way}0", 0))
		return nodeOf(t, client, "{way}") == to.Addr
	})
	must(addBoth("{way}1", "{way}2"))
	for key, want := range map[string]int{"0": 6, "1": 9, "2": 9, "new 1": 1, "new 2": 1} {
		require.Equal(t, want, value(t, client, "{way}"+key), "each script ran once: %s", key)
	}
}

// TestNewClientOfANode checks that a new client for the same address gets a new queue. A Cluster's client makes one for a
// node that left and came back.
func TestNewClientOfANode(t *testing.T) {
	p := fakeCluster(t, newFake(t, func([]string) string { return "*1\r\n:1\r\n" }))
	old, err := p.cluster.client.MasterForKey(t.Context(), "k")
	require.NoError(t, err)
	q := p.cluster.queueOf(old)
	require.Same(t, q, p.cluster.queueOf(old))
	require.Same(t, q, p.cluster.queueAt(old.Options().Addr, q.node))
	fresh := client(t, old.Options().Addr, nil)
	require.NotSame(t, q, p.cluster.queueOf(fresh))
	require.Same(t, fresh, p.cluster.queueAt(old.Options().Addr, q.node).node)
}

func TestClientsOfUnknownNodesAreClosed(t *testing.T) {
	p := fakeCluster(t, newFake(t, func([]string) string { return "*1\r\n:1\r\n" }))
	known, err := p.cluster.client.MasterForKey(t.Context(), "k")
	require.NoError(t, err)
	node := p.cluster.queueAt("127.0.0.1:1", p.cluster.queueOf(known).node).node
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, node.Ping(over).Err(), context.Canceled)
	p = nil
	eventually(t, "the client is closed", func() bool {
		runtime.GC()
		return errors.Is(node.Ping(over).Err(), redis.ErrClosed)
	})
}

// TestPanickingHookDuringSlotLoad checks that a panic in a hook fails the calls that wait for the slots, and only these.
func TestPanickingHookDuringSlotLoad(t *testing.T) {
	var f *fake
	f = newFake(t, func(args []string) string {
		if args[0] == "evalsha" {
			return "*1\r\n:1\r\n"
		}
		return slotsReply(f.Addr)
	})
	var broken atomic.Bool
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{f.Addr}, Protocol: 2, DisableIdentity: true,
		NewClient: func(o *redis.Options) *redis.Client {
			c := redis.NewClient(o)
			c.AddHook(slotsHook{before: func() {
				if broken.Load() {
					panic("the hook")
				}
			}})
			return c
		},
	})
	defer c.Close()
	p := newPipe(t, c)
	broken.Store(true)
	err := run(t.Context(), p, long, "n", 1)
	require.ErrorContains(t, err, "the hook")
	require.ErrorIs(t, err, ErrNotSent)
	broken.Store(false)
	require.NoError(t, run(t.Context(), p, long, "n", 1))
}

// slotsHook calls a function before slots are loaded.
type slotsHook struct {
	hook
	before func()
}

func (h slotsHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "cluster" {
			h.before()
		}
		return next(ctx, cmd)
	}
}

// TestClusterStart makes the first call of clients that do not know the slots yet. Some nodes of the Cluster are down.
func TestClusterStart(t *testing.T) {
	var healthy *fake
	healthy = newFake(t, func(args []string) string {
		if args[0] == "evalsha" {
			return "*1\r\n:1\r\n"
		}
		return slotsReply(healthy.Addr)
	})
	for name, addrs := range map[string][]string{
		"dead": {refusing(t), refusing(t), healthy.Addr},
		"hung": {silent(t), healthy.Addr},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			for range 20 {
				c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
				require.NoError(t, run(t.Context(), newPipe(t, c), long, "n", 1))
				require.NoError(t, c.Close())
			}
			require.Less(t, time.Since(began), long/4, "a node that is down delays the first call")
		})
	}
}

// slotsReply returns the reply to CLUSTER SLOTS of a Cluster whose only node has the address addr.
func slotsReply(addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$1\r\nx\r\n", len(host), host, port)
}
