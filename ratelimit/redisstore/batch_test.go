package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// counting is a rule without a limit.
var counting = ratelimit.Buckets(ratelimit.BucketOptions{})

// atOnce runs each op as a separate group, all in one round trip, and returns the results as concurrent callers would
// get them.
func atOnce(ctx context.Context, s *Store, ops ...ratelimit.Op) ([]ratelimit.Result, []error) {
	results, errs := make([]ratelimit.Result, len(ops)), make([]error, len(ops))
	requests, calls := make([]request, len(ops)), make([]redispipe.Call, len(ops))
	for i := range ops {
		requests[i] = s.newRequest(ops[i:i+1], results[i:i+1])
		calls[i] = requests[i].call
	}
	for i, reply := range s.pipe.RunAll(ctx, s.timeout, calls) {
		errs[i] = s.decode(ctx, &requests[i], reply)
	}
	return results, errs
}

// commands runs ops twice, the second time after a reset and with loaded scripts. It returns the number of script calls
// and the results of the second time.
func commands(t *testing.T, server *testhost.Redis, s *Store, ops ...ratelimit.Op) (int, []ratelimit.Result) {
	t.Helper()
	do(t, s, ops...)
	for i := range ops {
		do(t, s, opOf(ratelimit.Reset, ops[i].Rule, ops[i].Key, 0))
	}
	before, _ := server.Calls("evalsha")
	results := do(t, s, ops...)
	after, _ := server.Calls("evalsha")
	return after - before, results
}

func remains(results []ratelimit.Result) (out []int64) {
	for _, r := range results {
		out = append(out, r.Remaining)
	}
	return out
}

// TestOpsShareCommand checks that concurrent ops share a script call if they have the same kind, rule and interval.
func TestOpsShareCommand(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	for name, r := range lasting(ratelimit.Block{}) {
		for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Peek, ratelimit.Add, ratelimit.Count} {
			if kind == ratelimit.Count && name == "gcra" {
				continue
			}
			n, results := commands(t, server, s, onManyKeys(kind, r, 50)...)
			require.Equal(t, 1, n, "%s: %v", name, kind)
			for _, res := range results {
				require.True(t, res.Allowed, "%s: %v", name, kind)
			}
		}
	}
	gcra := lasting(ratelimit.Block{})["gcra"]
	n, _ := commands(t, server, s,
		takeOf(hourlyWindow(3), "a", 1), takeOf(gcra, "b", 1), opOf(ratelimit.Peek, gcra, "p", 1), takeOf(gcra, "c", 2),
		takeOf(hourlyWindow(3), "d", 2), takeOf(hourlyWindow(4), "e", 2))
	require.Equal(t, 4, n, "takes with the GCRA, the peek, and takes with each of the windows")
	short, long := opOf(ratelimit.Count, counting, "a", 0), opOf(ratelimit.Count, counting, "b", 0)
	short.Interval, long.Interval = 20*time.Second, 595*time.Second
	n, _ = commands(t, server, s, short, long)
	require.Equal(t, 2, n, "two intervals")
}

// TestRulesOfOneKeyShareATrip checks that ops on different counters of a key share a round trip, and that ops on the
// same counter do not.
func TestRulesOfOneKeyShareATrip(t *testing.T) {
	s, _, _ := frozen(t)
	second, hour := ratelimit.FixedWindow(10, time.Second), hourlyWindow(20)
	tripsOf := func(ops ...ratelimit.Op) int {
		return len(s.trips(ops, make([]ratelimit.Result, len(ops))))
	}
	for kind := ratelimit.Take; kind <= ratelimit.Reset; kind++ {
		require.Equal(t, 1, tripsOf(opOf(kind, second, "k", 1), opOf(kind, hour, "k", 1)), kind)
	}
	ops := []ratelimit.Op{
		opOf(ratelimit.Add, hour, "k", 3), opOf(ratelimit.Add, second, "k", 3), opOf(ratelimit.Count, hour, "k", 0),
		opOf(ratelimit.Reset, hour, "k", 0), opOf(ratelimit.Count, hour, "k", 0), opOf(ratelimit.Count, second, "k", 0),
	}
	require.Equal(t, 4, tripsOf(ops...))
	results := do(t, s, ops...)
	require.EqualValues(t, 3, results[2].Count)
	require.Zero(t, results[4].Count)
	require.EqualValues(t, 3, results[5].Count)
	require.Equal(t, 1, tripsOf(), "no ops")
}

func TestBatchSizeLimitsKeysPerCommand(t *testing.T) {
	server := testhost.StartRedis(t)
	for size, want := range map[int]int{1: 10, 4: 3, 10: 1, 0: 1, 256: 1} {
		s := newStore(t, server.Client(nil), Options{Timeout: patient.Timeout, BatchSize: size})
		n, _ := commands(t, server, s, onManyKeys(ratelimit.Take, hourlyWindow(100), 10)...)
		require.Equal(t, want, n, "BatchSize: %d", size)
	}
	for _, size := range []int{-1, 257, 9000} {
		_, err := New(server.Client(nil), Options{BatchSize: size})
		require.ErrorContains(t, err, fmt.Sprint("Options.BatchSize is ", size))
	}
}

// TestLargestBatch takes from more keys than a script call or a round trip can have.
func TestLargestBatch(t *testing.T) {
	t.Parallel()
	s := newStore(t, testhost.StartRedis(t).Client(nil), Options{Timeout: patient.Timeout, BatchSize: 256})
	for name, r := range lasting(ratelimit.Block{}) {
		for left := int64(4); left >= 3; left-- {
			for _, res := range do(t, s, onManyKeys(ratelimit.Take, r, 4000)...) {
				require.Equal(t, left, res.Remaining, name)
			}
		}
	}
}

// TestIntervalsAreBounded counts over more intervals than the store caches arguments for.
func TestIntervalsAreBounded(t *testing.T) {
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	do(t, s, opOf(ratelimit.Add, counting, "k", 3))
	for i := range 2*maxRules + 7 {
		op := opOf(ratelimit.Count, counting, "k", 0)
		op.Interval = 100*time.Second + time.Duration(i)*time.Microsecond
		require.EqualValues(t, 3, do(t, s, op)[0].Count)
		require.LessOrEqual(t, len(s.rules.args), maxRules)
	}
}
