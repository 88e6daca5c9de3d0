package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

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

func limited(limit int64) ratelimit.Rule {
	return ratelimit.FixedWindow(limit, time.Hour)
}

func takeOf(r ratelimit.Rule, key string, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Take, NewGroup: true}
}

// manyTakes returns takes of n keys.
func manyTakes(r ratelimit.Rule, keys int) (ops []ratelimit.Op) {
	for i := range keys {
		ops = append(ops, takeOf(r, fmt.Sprint("many", i), 1))
	}
	return ops
}

// commands returns the number of script calls that ops need, and their results.
func commands(t *testing.T, server *testhost.Redis, s *Store, ops ...ratelimit.Op) (int, []ratelimit.Result) {
	t.Helper()
	do(t, s, ops...)
	for i := range ops {
		do(t, s, ratelimit.Op{Rule: ops[i].Rule, Key: ops[i].Key, Kind: ratelimit.Reset})
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

// TestTakesShareCommand counts commands: concurrent takes by one rule are one command, and
// each other group is one command.
func TestTakesShareCommand(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	for name, r := range lasting(ratelimit.Block{}) {
		n, results := commands(t, server, s, manyTakes(r, 50)...)
		require.Equal(t, 1, n, name)
		for _, res := range results {
			require.EqualValues(t, 4, res.Remaining, name)
		}
	}
	gcra := lasting(ratelimit.Block{})["gcra"]
	peek := takeOf(gcra, "p", 1)
	peek.Kind = ratelimit.Peek
	n, _ := commands(t, server, s,
		takeOf(limited(3), "a", 1), takeOf(gcra, "b", 1), peek, takeOf(gcra, "c", 2), takeOf(limited(3), "d", 2), takeOf(limited(4), "e", 2))
	require.Equal(t, 4, n, "GCRAs, the peek, windows of either limit")
}

// TestGroupsOfOneKeyKeepTheirOrder runs groups by different scripts.
func TestGroupsOfOneKeyKeepTheirOrder(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	r := limited(100)
	tier := r.WithLimit(50)
	count, reset := takeOf(r, "k", 0), takeOf(r, "k", 0)
	count.Kind, reset.Kind = ratelimit.Count, ratelimit.Reset
	for range 20 {
		ops := []ratelimit.Op{takeOf(r, "k", 1), count, takeOf(r, "k", 1), takeOf(r, "k", 1), count, takeOf(tier, "k", 4), reset, takeOf(r, "other", 1), count}
		n, results := commands(t, server, s, ops...)
		require.Equal(t, 9, n)
		require.Equal(t, []int64{1, 3, 0}, []int64{results[1].Count, results[4].Count, results[8].Count})
		require.EqualValues(t, 43, results[5].Remaining)
	}
	for name, r := range lasting(ratelimit.Block{}) {
		results := do(t, s, takeOf(r, "a", 1), takeOf(r, "a", 1), takeOf(r, "b", 1), takeOf(r, "a", 3), takeOf(r, "a", 2))
		require.Equal(t, []int64{4, 3, 4, 0, 0}, remains(results), name)
		require.False(t, results[4].Allowed, name)
	}
}

func TestBatchSizeLimitsKeysPerCommand(t *testing.T) {
	server := testhost.StartRedis(t)
	for size, want := range map[int]int{1: 10, 4: 3, 10: 1, 0: 1, 256: 1} {
		s := newStore(t, server.Client(nil), Options{Timeout: patient.Timeout, BatchSize: size})
		n, _ := commands(t, server, s, manyTakes(limited(100), 10)...)
		require.Equal(t, want, n, "BatchSize: %d", size)
	}
	for _, size := range []int{-1, 257, 9000} {
		_, err := New(server.Client(nil), Options{BatchSize: size})
		require.ErrorContains(t, err, fmt.Sprint("Options.BatchSize is ", size))
	}
}

// TestLargestBatch takes from more keys than one script call or one round trip has.
func TestLargestBatch(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), Options{Timeout: patient.Timeout, BatchSize: 256})
	for name, r := range lasting(ratelimit.Block{}) {
		for left := int64(4); left >= 3; left-- {
			for _, res := range do(t, s, manyTakes(r, 4000)...) {
				require.Equal(t, left, res.Remaining, name)
			}
		}
	}
}

// TestManyKeysOfCluster uses a Cluster client and a client for a single node.
func TestManyKeysOfCluster(t *testing.T) {
	t.Parallel()
	server, plain, cluster := testhost.StartNode(t)
	for name, client := range map[string]redis.UniversalClient{"plain": plain, "cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, client, patient)
			r := limited(5)
			var ops []ratelimit.Op
			for i := range 40 {
				ops = append(ops, takeOf(r, fmt.Sprint(name, i%10), 1))
			}
			for _, first := range []bool{true, false} {
				before, _ := server.Calls("evalsha")
				results, errs := atOnce(t.Context(), s, ops...)
				after, _ := server.Calls("evalsha")
				for i, res := range results {
					require.NoError(t, errs[i])
					switch key := int64(i / 10); {
					case first:
						require.Equal(t, 4-key, res.Remaining)
					default:
						require.Equal(t, key == 0, res.Allowed)
					}
				}
				if !first { // when the script is loaded, and the pipe knows of the slots
					require.Equal(t, before+10, after, "one for each key")
				}
			}
		})
	}
}
