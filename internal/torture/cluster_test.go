package torture_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

const masters = 3 // the number of masters of a Cluster

func TestCluster(t *testing.T) {
	t.Parallel()
	h := cluster(t, func(s ratelimit.Store) ratelimit.Store { return s })
	require.NoError(t, h.run(t, length(t, 0)))
}

// cluster returns a host with a Cluster. A shard is a master with its replica. wrap may wrap the store.
func cluster(t *testing.T, wrap func(ratelimit.Store) ratelimit.Store) *host {
	c := testhost.StartCluster(t,
		"--cluster-require-full-coverage", "no", // a node serves its slots even if other slots are down
		"--appendonly", "yes", "--appendfsync", "no") // a kill loses nothing; a slow disk does not stop six nodes
	store := wrap(newStore(t, c.Client(nil)))
	var slots [masters]int // for each shard, the slot that the current episode uses
	h := &host{
		breaks: true, // a node that does not hear from others refuses calls
		shards: masters, deadline: timeout, perEpisode: 2, canary: testhost.StartRedis(t, testhost.Durable...),
		subjects: func() []*subject {
			all := subjects(t, store, true, "", "", "")()
			for _, s := range all {
				// The slot of a key is random. The masters have equal parts of the slots, in order.
				for i := 0; ; i++ {
					key := fmt.Sprint(s.key, i)
					if slot := c.Slot(key); slot*masters/16384 == s.shard {
						s.key, slots[s.shard] = key, slot
						break
					}
				}
			}
			return all
		},
	}
	for i := range masters {
		h.faults = append(h.faults, shardFaults(c, i, &slots)...)
	}
	return h
}

// shardFaults returns the faults of a shard. slots is a slot of each shard.
func shardFaults(c *testhost.Cluster, shard int, slots *[masters]int) []fault {
	slot := &slots[shard]
	var before [masters]*testhost.Redis
	settle := func() int64 {
		c.Restart()
		from := now()
		for i, slot := range slots {
			before[i] = c.Masters(slot)[0]
			c.WaitReplicated(slot)
		}
		return from
	}
	// A replica may take over after any fault, because the Cluster mistakes a slow node for a dead one.
	failedOver := func() (shards []int) {
		for i, slot := range slots {
			if c.Masters(slot)[0] != before[i] { // once all nodes agree
				shards = append(shards, i)
			}
		}
		return shards
	}
	faultOf := func(name string, begin func(time.Duration) func()) fault {
		return fault{name: name, shard: shard, loses: failedOver, settle: settle, begin: begin}
	}
	return []fault{
		faultOf("Cluster: `SIGSTOP` of a master", func(time.Duration) func() {
			resume := before[shard].Pause()
			return func() { resume(); c.Restart() }
		}),
		faultOf("Cluster: `kill -9` and restart of a master", func(time.Duration) func() {
			before[shard].Kill()
			return func() { before[shard].Restart(); c.Restart() } // it refuses calls for its first two seconds
		}),
		faultOf("Cluster: failover", func(time.Duration) func() { c.KillMaster(*slot); return nil }),
		faultOf("Cluster: move of a slot", func(time.Duration) func() {
			owners := c.Masters(*slot)
			c.MoveSlot(*slot, owners[1])
			return func() { c.MoveSlot(*slot, owners[0]) }
		}),
	}
}

// TestSentinel starts a new Sentinel for each failover.
func TestSentinel(t *testing.T) {
	t.Parallel()
	end := time.Now().Add(length(t, 0))
	for i := 0; i == 0 || time.Now().Before(end); i++ {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := testhost.StartSentinel(t, testhost.Durable...)
			store := newStore(t, s.Client(func(o *redis.FailoverOptions) { o.DialTimeout = time.Second }))
			settle := func() int64 { from := now(); s.WaitReplicated(); return from }
			faultOf := func(name string, fail func()) fault {
				return fault{name: name, shard: all, loses: always, settle: settle, begin: func(time.Duration) func() { fail(); return nil }}
			}
			failover := func() {
				s.Failover()
				s.Master.Kill() // otherwise, it would accept charges until the Sentinel makes it a replica
			}
			h := &host{
				subjects: subjects(t, store, true, ""), shards: 1, deadline: timeout,
				perEpisode: 1, canary: testhost.StartRedis(t, testhost.Durable...),
				faults: []fault{faultOf("Sentinel: the master crashes", s.KillMaster), faultOf("Sentinel: failover in good order", failover)},
			}
			require.NoError(t, h.run(t, 0))
		})
	}
}
