package torture_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// timeout is the timeout of the stores, which is the deadline of each take.
const timeout = 200 * time.Millisecond

func TestSingleRedis(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"durable": testhost.Durable, "volatile": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := single(t, args, func(s ratelimit.Store) ratelimit.Store { return s })
			require.NoError(t, h.run(t, length(t, 2*time.Second)))
		})
	}
}

// single returns a host with one Redis behind a fault proxy. wrap may wrap the store.
func single(t *testing.T, args []string, wrap func(ratelimit.Store) ratelimit.Store) *host {
	server := testhost.StartRedis(t, args...)
	client, proxy := faultproxy.NewClient(t, server)
	var loses func() []int
	if args == nil {
		loses = always
	}
	return &host{
		subjects: subjects(t, wrap(newStore(t, client)), true, ""), shards: 1, deadline: timeout,
		perEpisode: 2, canary: testhost.StartRedis(t, testhost.Durable...),
		faults: append(networkFaults(t, proxy), serverFaults(t, server, loses)...),
	}
}

func newStore(t *testing.T, c redis.UniversalClient) *redisstore.Store {
	s, err := redisstore.New(c, redisstore.Options{Timeout: timeout})
	require.NoError(t, err)
	return s
}

// networkFaults returns the faults of a proxy.
func networkFaults(t *testing.T, p *faultproxy.Proxy) []fault {
	restore := func() { require.NoError(t, p.Restore()) }
	network := func(name string, begin func(hold time.Duration)) fault {
		return fault{name: name, shard: all, begin: func(hold time.Duration) func() { begin(hold); return restore }}
	}
	return []fault{
		network("connections cut", func(time.Duration) { p.Cut() }),
		network("half-open connections", func(time.Duration) { p.Stall() }),
		network("connections reset", func(time.Duration) { p.Reset() }),
		network("connections cut within a reply", func(hold time.Duration) { p.CutAfter(int(hold % 3000)) }),
		network("connections reset within a reply", func(hold time.Duration) { p.ResetAfter(int(hold % 3000)) }),
		network("latency below the deadline", func(hold time.Duration) { p.Delay(hold%timeout/3, hold%timeout/3) }),
		network("latency of up to 5.5 s", func(hold time.Duration) { p.Delay(hold, hold) }),
	}
}

// serverFaults returns the faults of a server. loses is the function of the fault that kills
// the server.
func serverFaults(t *testing.T, s *testhost.Redis, loses func() []int) []fault {
	admin := s.Client(func(o *redis.Options) { o.ReadTimeout = 5 * time.Second })
	do := func(args ...any) { require.NoError(t, admin.Do(context.Background(), args...).Err()) }
	return []fault{
		{name: "`kill -9` and restart", shard: all, loses: loses, begin: func(time.Duration) func() {
			s.Kill()
			return func() { require.NoError(t, s.RedisProcess.Restart()) }
		}},
		{name: "`SIGSTOP` and `SIGCONT`", shard: all, begin: func(time.Duration) func() { return s.Pause() }},
		{name: "`CLIENT PAUSE`", shard: all, begin: func(hold time.Duration) func() {
			do("client", "pause", hold.Milliseconds())
			return func() {}
		}},
		{name: "`SCRIPT FLUSH`", shard: all, begin: func(time.Duration) func() { do("script", "flush"); return nil }},
		{name: "Redis is full", shard: all, begin: func(time.Duration) func() {
			do("config", "set", "maxmemory", "1")
			return func() { do("config", "set", "maxmemory", "0") }
		}},
	}
}
