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

// Sentinel is a master, its replica and one Sentinel that watches them and decides alone, for one test.
// Its methods fail the test on an error. Only the test's goroutine may call them; clients are safe for
// concurrent use.
type Sentinel struct {
	*Redis // the Sentinel

	Master, Replica *Redis // as they began

	tb    testing.TB
	admin *redis.SentinelClient
}

// StartSentinel starts the three servers for the test and waits until they know one another. It skips
// and fails like [StartRedis]. args are arguments of the master and the replica.
func StartSentinel(tb testing.TB, args ...string) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb, Master: StartRedis(tb, append([]string{"--repl-diskless-sync-delay", "0"}, args...)...)}
	host, port := s.Master.hostPort()
	s.Replica = StartRedis(tb, append([]string{"--replicaof", host + " " + port}, args...)...)
	waitFor(tb, "the replica follows", func() bool { return s.Replica.role().following })
	// The stream begins with the first write that the replica asks for.
	if err := s.Master.Client(nil).Set(context.Background(), "testhost", "", time.Millisecond).Err(); err != nil {
		tb.Fatalf("testhost: %v", err)
	}
	s.WaitReplicated()
	// A Sentinel looks again only after 10 s for what it does not find at its start.
	waitFor(tb, "the master has it", func() bool { return s.Master.role().online })

	// Until a test kills the master, it is never down for the Sentinel: on a busy machine it may stall for seconds.
	p, err := runSentinel(tb.TempDir(), fmt.Sprintf(`
sentinel monitor %[1]s %[2]s %[3]s 1
sentinel down-after-milliseconds %[1]s 60000
sentinel failover-timeout %[1]s 2000
`, MasterName, host, port))
	s.Redis = newRedis(tb, p, err)
	s.admin = redis.NewSentinelClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
	tb.Cleanup(func() { _ = s.admin.Close() })
	waitFor(tb, "the Sentinel knows the replica", func() bool {
		replicas, err := s.admin.Replicas(context.Background(), MasterName).Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	return s
}

// Client returns a client that asks the Sentinel for the master. It is closed with the test. change may
// change its options; it may be nil.
func (s *Sentinel) Client(change func(*redis.FailoverOptions)) *redis.Client {
	o := &redis.FailoverOptions{
		MasterName: MasterName, SentinelAddrs: []string{s.Addr},
		Protocol: 2, DisableIdentity: true,
	}
	if change != nil {
		change(o)
	}
	c := redis.NewFailoverClient(o)
	s.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Failover makes the replica the master, and waits for it. The old master serves until the Sentinel makes it a
// replica, some seconds later, and loses what the replica does not have by the promotion. Failover is called once.
func (s *Sentinel) Failover() {
	s.tb.Helper()
	if err := s.admin.Failover(context.Background(), MasterName).Err(); err != nil {
		s.tb.Fatalf("testhost: failover: %v", err)
	}
	s.waitPromoted()
}

// KillMaster kills the master and waits until the replica has taken over with the writes it has
// received.
func (s *Sentinel) KillMaster() {
	s.tb.Helper()
	if err := s.admin.Set(context.Background(), MasterName, "down-after-milliseconds", "500").Err(); err != nil {
		s.tb.Fatalf("testhost: %v", err)
	}
	s.Master.Kill()
	s.waitPromoted()
}

// WaitReplicated waits until the replica has all writes made so far.
func (s *Sentinel) WaitReplicated() {
	s.tb.Helper()
	waitCaughtUp(s.tb, s.Master, s.Replica)
}

// LoseWrites kills the master and lets the replica take over without the writes of write: the replica is down
// meanwhile. It has all earlier writes. The servers must be [Durable].
func (s *Sentinel) LoseWrites(write func()) {
	s.tb.Helper()
	s.WaitReplicated()
	s.Replica.Kill()
	write()
	s.Master.Kill()
	s.Replica.Restart()
	// The Sentinel refuses while it has no connection to the replica.
	waitFor(s.tb, "the Sentinel accepts the replica", func() bool {
		err := s.admin.Failover(context.Background(), MasterName).Err()
		return err == nil || redis.HasErrorPrefix(err, "INPROG")
	})
	s.waitPromoted()
}

// waitPromoted waits until the replica is the master, for the Sentinel, too.
func (s *Sentinel) waitPromoted() {
	s.tb.Helper()
	_, port := s.Replica.hostPort()
	waitFor(s.tb, "the replica is the master", func() bool {
		addr, err := s.admin.GetMasterAddrByName(context.Background(), MasterName).Result()
		return err == nil && addr[1] == port && s.Replica.role().master
	})
}
