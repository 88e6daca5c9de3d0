package layer

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/internal/torture"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// quickRules has rules of each algorithm. A test is several times as long as their Per.
var quickRules = map[string]ratelimit.Rule{
	"buckets": ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1000, Per: 500 * time.Millisecond, Interval: 100 * time.Millisecond, Span: time.Second}),
	"log":     ratelimit.SlidingLog(1000, 500*time.Millisecond),
	"stream":  ratelimit.SlidingLog(1000, 500*time.Millisecond).WithStream(),
	"window":  ratelimit.FixedWindow(1000, 500*time.Millisecond),
	"gcra":    ratelimit.GCRA(1000, 500*time.Millisecond).WithBurst(800),
}

// recordingStore records windows, allotments and lost units in Redis, where the records outlive a process that is
// killed.
type recordingStore struct {
	ratelimit.Store
	c    *redis.Client
	last atomic.Int64
}

func (s *recordingStore) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	results, err := s.Store.Do(ctx, ops)
	for i, res := range results {
		switch at := res.Receipt.At; {
		case ops[i].Kind == ratelimit.Refund && !res.Allowed:
			s.c.IncrBy(ctx, "lost", ops[i].Receipt.N)
		case ops[i].Kind != ratelimit.Take || !res.Allowed:
		case ops[i].Rule.Algorithm() == "window" && s.last.Swap(at) != at:
			s.c.SAdd(ctx, "ends", at)
		case ops[i].Prepaid > 0:
			s.c.Incr(ctx, "allotments")
		}
	}
	return results, err
}

func (s *recordingStore) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(s.Do).DoOne(ctx, op)
}

// takeInProcesses starts four processes that take units by the rule r, and kills two of them. It returns the result
// of torture.Check.
func takeInProcesses(t *testing.T, r ratelimit.Rule) error {
	const processes, killed, share = 4, 2, 50
	var c *redis.Client
	takes := torture.Run(t, torture.Plan{
		Processes: processes, Killed: killed, Goroutines: 8, Units: 3, For: testenv.Duration(t, 1500*time.Millisecond),
		Server: func() string { return testhost.StartRedis(t).Addr },
		Taker: func(addr string) func(context.Context, int64) (bool, error) {
			c = redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
			t.Cleanup(func() { _ = c.Close() })
			store, err := redisstore.New(c, redisstore.Options{Timeout: time.Minute})
			require.NoError(t, err)
			l, err := newPrepaid(&recordingStore{Store: store, c: c}, PrepaidOptions{Share: share, Timeout: time.Minute})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, l.Close()) })
			return pacing(l, r)
		},
	})
	admitted := int64(0)
	for _, k := range takes {
		if k.Allowed {
			admitted += k.N
		}
	}
	allotments, lost := number(t, c, "allotments"), number(t, c, "lost")
	t.Logf("%d takes, %d units admitted, %d allotments or more, %d units not given back", len(takes), admitted, allotments, lost)
	rule := checkedRule(r)
	if r.Algorithm() == "window" {
		rule = rule.WithWindowEnds(r.Limit(), r.Per(), ends(t, c))
	} else {
		require.Greater(t, allotments, int64(20))
	}
	life := r.Per() / 20
	held := int64(processes+killed) * (2*r.Burst()/share + 3)
	if r.Algorithm() == "gcra" {
		held += lost + r.Limit()*int64(life)/int64(r.Per())
	}
	return torture.Check(torture.Prepaid(rule, life, held), takes)
}

// pacing returns a function that waits and then takes units. Most takes come at random times. In the last fifth of
// each 1.2 s, all processes take as fast as they can.
func pacing(l *prepaidLayer, r ratelimit.Rule) func(context.Context, int64) (bool, error) {
	return func(ctx context.Context, n int64) (bool, error) {
		const turn = 1200 * time.Millisecond
		wait := time.Duration(rand.Int64N(int64(2 * time.Millisecond)))
		if calm := turn*4/5 - time.Duration(time.Now().UnixNano())%turn; calm > 0 {
			wait = min(calm, time.Duration(rand.Int64N(int64(150*time.Millisecond))))
		}
		<-time.After(wait)
		res, err := l.DoOne(ctx, ratelimit.Op{Rule: r, Key: "k", N: n, Kind: ratelimit.Take})
		return res.Allowed, err
	}
}

func number(t *testing.T, c *redis.Client, key string) int64 {
	n, err := c.Get(t.Context(), key).Int64()
	if err != redis.Nil {
		require.NoError(t, err)
	}
	return n
}

func ends(t *testing.T, c *redis.Client) (ends []int64) {
	members, err := c.SMembers(t.Context(), "ends").Result()
	require.NoError(t, err)
	for _, m := range members {
		at, err := strconv.ParseInt(m, 10, 64)
		require.NoError(t, err)
		ends = append(ends, at)
	}
	return ends
}

func TestProcessesWithAllotmentsKeepTheLimit(t *testing.T) {
	for name, r := range quickRules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, takeInProcesses(t, r))
		})
	}
}
