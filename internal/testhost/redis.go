package testhost

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/testenv"
)

// Redis is a redis-server for one test.
type Redis struct {
	*RedisProcess
	tb    testing.TB
	admin *redis.Client // for queries of a server that may be dead
}

// StartRedis starts a redis-server for the test. If it is not installed, the test is skipped, or fails with CI=true.
// args are those of [RunRedis]. A [Durable] server keeps its data when it restarts.
func StartRedis(tb testing.TB, args ...string) *Redis {
	tb.Helper()
	testenv.LookPath(tb, "redis-server")
	p, err := RunRedis(tb.TempDir(), args...)
	return newRedis(tb, p, err)
}

// newRedis returns the Redis of p, which ends with the test.
func newRedis(tb testing.TB, p *RedisProcess, err error) *Redis {
	tb.Helper()
	must(tb, err)
	tb.Cleanup(p.Close)
	s := &Redis{RedisProcess: p, tb: tb}
	s.admin = s.Client(func(o *redis.Options) {
		o.MaxRetries, o.DialerRetries = -1, 1
		o.DialTimeout, o.ReadTimeout = time.Second, 2*time.Second
	})
	return s
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("testhost: %v", err)
	}
}

// waitFor fails the test if done does not become true within half a minute, which is much longer than it takes.
func waitFor(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			tb.Fatalf("testhost: after 30 s it is not true that %s", what)
		}
	}
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

// ClientAs returns a client that logs in as user with the password "secret".
func (s *Redis) ClientAs(user string) *redis.Client {
	return s.Client(func(o *redis.Options) { o.Username, o.Password = user, "secret" })
}

// SetUser creates a user with these rules and no others.
func (s *Redis) SetUser(user string, rules []string) {
	s.tb.Helper()
	args := []any{"ACL", "SETUSER", user, "reset"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	must(s.tb, s.admin.Do(context.Background(), args...).Err())
}

// ParseUser returns the rules of a user: the words that follow ACL SETUSER and the user's name in a document.
func ParseUser(tb testing.TB, document, user string) (rules []string) {
	tb.Helper()
	text, err := os.ReadFile(document)
	must(tb, err)
	for line := range strings.Lines(string(text)) {
		if rule, ok := strings.CutPrefix(strings.TrimSpace(line), "ACL SETUSER "+user+" "); ok {
			return strings.Fields(rule)
		}
	}
	tb.Fatalf("testhost: %s has no ACL SETUSER %s", document, user)
	return nil
}

// Restart is [RedisProcess.Restart]. It fails the test on an error.
func (s *Redis) Restart() {
	s.tb.Helper()
	must(s.tb, s.RedisProcess.Restart())
}

// RestartTwice restarts a stopped server, stops it and restarts it again. It calls fails while the server is down, first
// before clients have connected and then with open connections, and recovers while it runs.
func (s *Redis) RestartTwice(fails, recovers func()) {
	s.tb.Helper()
	fails()
	s.Restart()
	recovers()
	s.Stop()
	fails()
	s.Restart()
	recovers()
}

// Calls returns how often a command was called since the server started, and how many microseconds a call took on
// average.
func (s *Redis) Calls(command string) (calls int, usecPerCall float64) {
	s.tb.Helper()
	info, err := s.admin.Info(context.Background(), "commandstats").Result()
	must(s.tb, err)
	var usec int
	_, _ = fmt.Sscanf(field(info, "cmdstat_"+strings.ToLower(command)), "calls=%d,usec=%d,usec_per_call=%f", &calls, &usec, &usecPerCall)
	return calls, usecPerCall
}

// field returns a field of INFO, or "".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s *Redis) hostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(s.Addr)
	return host, port
}

// role is the replication state of a server. A server that does not answer has the zero role.
type role struct {
	master    bool
	follows   string // the port of a replica's master
	offset    int    // how much of the replication stream the server has applied
	following bool   // a replica is in sync with its master
	online    bool   // the first replica of a master is online
}

func (s *Redis) role() role {
	info, _ := s.admin.Info(context.Background()).Result()
	// Until a durable replica has rewritten its file, the data from its master is not on disk.
	writing := strings.Contains(info, "aof_rewrite_in_progress:1") || strings.Contains(info, "aof_rewrite_scheduled:1")
	offset, _ := strconv.Atoi(field(info, "master_repl_offset"))
	if processed := field(info, "slave_repl_offset"); processed != "" {
		offset, _ = strconv.Atoi(processed)
	}
	return role{
		master:    field(info, "role") == "master",
		follows:   field(info, "master_port"),
		offset:    offset,
		following: field(info, "master_link_status") == "up" && !writing,
		online:    strings.Contains(info, "state=online"),
	}
}

// waitCaughtUp waits until the replica has applied all writes of the master.
func waitCaughtUp(tb testing.TB, master, replica *Redis) {
	tb.Helper()
	offset := master.role().offset
	waitFor(tb, "the replica has all data of the master", func() bool {
		r := replica.role()
		return r.following && r.offset >= offset
	})
}
