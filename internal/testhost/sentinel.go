package testhost

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name of the master that a [Sentinel] watches.
const MasterName = "main"

// Sentinel is a master, its replica and one Sentinel that watches them, for one test. Its methods fail the test on an
// error. Only the test's goroutine may call them.
type Sentinel struct {
	*Redis // the Sentinel itself

	Master, Replica *Redis // their roles at the start

	asks *redis.SentinelClient
}

// StartSentinel starts the three servers for the test and waits until they know one another. args are arguments of the
// master and the replica. The test is skipped under the same condition as in [StartRedis].
func StartSentinel(tb testing.TB, args ...string) *Sentinel {
	tb.Helper()
	s := &Sentinel{Master: StartRedis(tb, append([]string{"--repl-diskless-sync-delay", "0"}, args...)...)}
	host, port := s.Master.hostPort()
	s.Replica = StartRedis(tb, append([]string{"--replicaof", host + " " + port}, args...)...)
	waitFor(tb, "the replica follows", func() bool { return s.Replica.role().following })
	// The replication stream begins with the first write.
	must(tb, s.Master.admin.Set(context.Background(), "testhost", "", time.Millisecond).Err())
	waitCaughtUp(tb, s.Master, s.Replica)
	// If a Sentinel does not find a replica at its start, it looks again only after 10 s.
	waitFor(tb, "the master knows its replica", func() bool { return s.Master.role().online })

	// On a busy machine, the master can stall for seconds. The Sentinel must not consider it down until a test kills it.
	p, err := runSentinel(tb.TempDir(), fmt.Sprintf(`
sentinel monitor %[1]s %[2]s %[3]s 1
sentinel down-after-milliseconds %[1]s 60000
sentinel failover-timeout %[1]s 2000
`, MasterName, host, port))
	s.Redis = newRedis(tb, p, err)
	s.asks = redis.NewSentinelClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
	tb.Cleanup(func() { _ = s.asks.Close() })
	waitFor(tb, "the Sentinel knows the replica", func() bool {
		replicas, err := s.asks.Replicas(context.Background(), MasterName).Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	return s
}

// Client returns a client that asks the Sentinel for the master. It is closed with the test. change may change its
// options; it may be nil.
func (s *Sentinel) Client(change func(*redis.FailoverOptions)) *redis.Client {
	o := &redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: []string{s.Addr}, Protocol: 2, DisableIdentity: true}
	if change != nil {
		change(o)
	}
	c := redis.NewFailoverClient(o)
	s.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Failover makes the replica the master and waits for its promotion. The old master serves until the Sentinel makes it
// a replica, some seconds later. It loses all writes that the replica did not have at its promotion. Failover can be
// called only once.
func (s *Sentinel) Failover() {
	s.tb.Helper()
	must(s.tb, s.asks.Failover(context.Background(), MasterName).Err())
	s.waitPromoted()
}

// KillMaster kills the master and waits until the replica has taken over, with the writes that it has received.
func (s *Sentinel) KillMaster() {
	s.tb.Helper()
	must(s.tb, s.asks.Set(context.Background(), MasterName, "down-after-milliseconds", "500").Err())
	s.Master.Kill()
	s.waitPromoted()
}

// WaitReplicated waits until the replica has all earlier writes.
func (s *Sentinel) WaitReplicated() {
	s.tb.Helper()
	waitCaughtUp(s.tb, s.Master, s.Replica)
}

// LoseWrites calls write while the replica is down, kills the master, and lets the replica take over. The replica has
// all earlier writes, but not the writes that write makes. The servers must be [Durable].
func (s *Sentinel) LoseWrites(write func()) {
	s.tb.Helper()
	s.WaitReplicated()
	s.Replica.Kill()
	write()
	s.Master.Kill()
	s.Replica.Restart()
	// The Sentinel refuses to fail over until it is connected to the replica.
	waitFor(s.tb, "the Sentinel accepts the replica", func() bool {
		err := s.asks.Failover(context.Background(), MasterName).Err()
		return err == nil || redis.HasErrorPrefix(err, "INPROG")
	})
	s.waitPromoted()
}

// waitPromoted waits until the replica is the master and the Sentinel knows it.
func (s *Sentinel) waitPromoted() {
	s.tb.Helper()
	_, port := s.Replica.hostPort()
	waitFor(s.tb, "the replica is the master", func() bool {
		addr, err := s.asks.GetMasterAddrByName(context.Background(), MasterName).Result()
		return err == nil && addr[1] == port && s.Replica.role().master
	})
}
